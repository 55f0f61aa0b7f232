//! The page about states is what the code says.

#[path = "../examples/states/page.rs"]
mod page;

#[test]
fn states_doc_is_fresh() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/states.md");
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        stored == page::page(),
        "docs/reference/states.md is not what the machines say; make it anew:\n    {}",
        page::REGENERATE
    );
}
