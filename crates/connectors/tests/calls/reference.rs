use std::path::Path;

/// `UPDATE_REFERENCE=1` writes the page anew.
#[test]
fn the_reference_page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/connectors.md");
    let page = interlock_connectors::page::page();
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page, "docs/reference/connectors.md is not current: UPDATE_REFERENCE=1 writes it anew");
}
