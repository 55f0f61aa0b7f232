//! `interlock db check`: rows that contradict each other, and rows whose payload is not what they say.

use interlock_engine::payloads::survey::{Depth, survey};
use interlock_store::{CheckProgress, Store};

use super::StoreArg;
use super::place::{Line, PlaceArgs, progress, tell_lost};
use crate::output::span::bytes;
use crate::server::open;

pub async fn run(store: &StoreArg, place: &PlaceArgs, read_payloads: bool) -> anyhow::Result<()> {
    let opened = open::store_to_read(&store.url()).await?;
    let findings = opened.check_telling(looked_at()).await?;
    for finding in &findings {
        let tenant = finding.tenant.map(|tenant| tenant.to_string()).unwrap_or_default();
        println!("{}\t{tenant}\t{}\t{}", finding.check, finding.row, finding.what);
    }
    let lost = payloads(&opened, store, place, read_payloads).await;
    opened.close().await;
    let lost = lost?;
    anyhow::ensure!(findings.is_empty(), "{} rows contradict each other", findings.len());
    anyhow::ensure!(lost == 0, "{lost} rows refer to payloads that are missing or not what was stored");
    println!("nothing wrong was found");
    Ok(())
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
        println!("payloads in {bucket} were not looked at; --read-payloads reads them all, {}", bytes(total));
        return Ok(0);
    }
    let depth = if read_all { Depth::Whole } else { Depth::Length };
    let objects = place.open_to_read(&store.data)?;
    let found = survey(opened, &objects, depth, progress("payloads", Some(references))).await?;
    tell_lost(&found);
    Ok(found.lost_total)
}
