//! `interlock db check`: rows that contradict each other, and rows whose payload is not what they say.

use interlock_engine::payloads::survey::{Depth, survey};
use interlock_store::{CheckProgress, Finding, Store, TABLE_KEY};

use super::StoreArg;
use super::place::{Line, PlaceArgs, progress, tell_lost};
use crate::output::say_on;
use crate::output::span::{bytes, counted};
use crate::server::open;

pub async fn run(store: &StoreArg, place: &PlaceArgs, read_payloads: bool) -> anyhow::Result<()> {
    let opened = open::store_to_read(&store.url()).await?;
    let findings = opened.check_telling(looked_at()).await?;
    for finding in &findings {
        let tenant = finding.tenant.map(|tenant| tenant.to_string()).unwrap_or_default();
        say_on(&format!("{}\t{tenant}\t{}\t{}", finding.check, finding.row, finding.what));
    }
    let lost = payloads(&opened, store, place, read_payloads).await;
    opened.close().await;
    let lost = lost?;
    anyhow::ensure!(findings.is_empty(), "{}", wrong(&findings));
    anyhow::ensure!(lost == 0, "{lost} rows refer to payloads that are missing or not what was stored");
    say_on("nothing wrong was found");
    Ok(())
}

/// How much was found, with what is wrong with the tables themselves apart from what is wrong with their rows.
fn wrong(findings: &[Finding]) -> String {
    let unkeyed = findings.iter().filter(|finding| finding.check == TABLE_KEY).count();
    let keys = counted(unkeyed as u64, "table has no primary key", "tables have no primary key");
    match findings.len() - unkeyed {
        0 => keys,
        rows if unkeyed == 0 => format!("{rows} rows contradict each other"),
        rows => format!("{keys}, and {rows} rows contradict each other"),
    }
}

fn looked_at() -> impl FnMut(CheckProgress) {
    let line = Line::new();
    move |CheckProgress { statements, runs }| line.show(&format!("checked {statements} rules, {runs} runs"))
}

/// Answers with how many references are to something that cannot be had.
async fn payloads(opened: &Store, store: &StoreArg, place: &PlaceArgs, read_all: bool) -> anyhow::Result<u64> {
    let (references, total) = opened.payloads_total().await?;
    if references == 0 {
        return Ok(0);
    }
    if let Some(bucket) = place.bucket().filter(|_| !read_all) {
        say_on(&format!("payloads in {bucket} were not looked at; --read-payloads reads them all, {}", bytes(total)));
        return Ok(0);
    }
    let depth = if read_all { Depth::Whole } else { Depth::Length };
    let objects = place.open_to_read(&store.data)?;
    let found = survey(opened, &objects, depth, progress("payloads", Some(references))).await?;
    tell_lost(&found);
    Ok(found.lost_total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_without_keys_are_not_counted_as_rows() {
        let found = |check: &'static str| Finding { check, tenant: None, row: String::new(), what: String::new() };
        assert_eq!(wrong(&[found(TABLE_KEY)]), "1 table has no primary key");
        assert_eq!(wrong(&[found("CHECK_PLAN"), found("FEED")]), "2 rows contradict each other");
        let both = wrong(&[found(TABLE_KEY), found(TABLE_KEY), found("CHECK_PLAN")]);
        assert_eq!(both, "2 tables have no primary key, and 1 rows contradict each other");
    }
}
