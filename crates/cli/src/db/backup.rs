//! `interlock db backup`: the database first, then the payloads that the copy refers to. Payloads are written before
//! the rows that refer to them are committed, so that in this order none is missing.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use interlock_engine::payloads::Objects;
use interlock_engine::payloads::copy::back_up;
use interlock_store::StoreUrl;

use super::StoreArg;
use super::place::{PlaceArgs, beside, progress, tell_lost};
use crate::output::span::bytes;
use crate::server::SECRET_FILE;
use crate::server::open;

pub async fn run(store: &StoreArg, place: &PlaceArgs, to: PathBuf) -> anyhow::Result<()> {
    let url = store.url();
    let StoreUrl::Sqlite(path) = StoreUrl::parse(&url)? else {
        anyhow::bail!(
            "PostgreSQL is backed up by its own tools: pg_dump, or pg_basebackup with its log for any instant. \
             Back up {} after it: the database refers to payloads there",
            place.named(&store.data)
        );
    };
    let folder = beside(&to);
    anyhow::ensure!(!folder.exists(), "{} exists already; name a file for which it does not", folder.display());
    interlock_store::backup_file(&path, &to).await?;
    println!("{} is a copy of {}", to.display(), path.display());
    // Not beside the copy: with both, a thief could sign in with the keys in the copy.
    println!(
        "the server's secret is not in it: keep {} (or the file that --secret-file names) as well, somewhere else; without it \
         API keys and the secrets of webhooks are lost",
        store.data.join(SECRET_FILE).display()
    );
    payloads(store, place, &to, &folder).await.with_context(|| format!("the database is copied to {}", to.display()))
}

async fn payloads(store: &StoreArg, place: &PlaceArgs, to: &Path, folder: &Path) -> anyhow::Result<()> {
    let copy = open::store_to_read(&format!("sqlite:{}", to.display())).await?;
    let (references, total) = copy.payloads_total().await?;
    if references == 0 {
        copy.close().await;
        println!("it refers to no payloads beside it");
        return Ok(());
    }
    if let Some(bucket) = place.bucket() {
        copy.close().await;
        println!("it refers to payloads ({references} times, {}) that stay in {bucket}", bytes(total));
        println!(
            "the bucket keeps them only as long as the live store needs them: have it keep versions of what is deleted, \
             or copy it now, and keep that as long as this copy"
        );
        return Ok(());
    }
    let from = place.open_to_read(&store.data)?;
    let target = Objects::folder(folder)?;
    let live = open::store_to_read(&store.url()).await?;
    let survey = back_up(&copy, &live, &from, &target, progress("payloads", Some(references))).await?;
    live.close().await;
    copy.close().await;
    println!(
        "{} holds its {} payloads, {}, each held against its hash",
        folder.display(),
        survey.objects,
        bytes(survey.bytes)
    );
    if survey.gone > 0 {
        println!("{} more went with their runs meanwhile, by retention", survey.gone);
    }
    tell_lost(&survey);
    anyhow::ensure!(
        survey.lost_total == 0,
        "{} references are to payloads that were lost before: what needs them will fail",
        survey.lost_total
    );
    Ok(())
}
