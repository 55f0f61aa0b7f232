//! `interlock db backup`: the database first, then the payloads that the copy refers to. Payloads are written before
//! the rows that refer to them are committed, so that in this order none is missing. Both get their names when both are
//! there, the database last: a backup that bears its name is whole.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use interlock_engine::payloads::Objects;
use interlock_engine::payloads::copy::back_up;
use interlock_engine::payloads::survey::Survey;
use interlock_store::{StagedBackup, StoreUrl};

use super::StoreArg;
use super::place::{PlaceArgs, beside, progress, tell_lost};
use crate::output::say_on;
use crate::output::span::bytes;
use crate::server::SECRET_FILE;
use crate::server::open;

/// What became of the payloads that a copy refers to.
enum CopiedPayloads {
    None,
    StayInBucket { bucket: String, references: u64, bytes: u64 },
    Copied(Survey),
}

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
    anyhow::ensure!(
        to.exists() || !folder.exists(),
        "{} is there without its backup: another backup to this name is just being put in place, or an interrupted one has \
         left it; where none is under way remove it, or name another file",
        folder.display()
    );
    anyhow::ensure!(!folder.exists(), "{} exists already; name a file for which it does not", folder.display());
    let staged = StagedBackup::make(&path, &to).await?;
    let copied = payloads(store, place, &staged).await.context("no backup was made: its payloads cannot be copied")?;
    put_in_place(staged, &to, &folder).await?;

    say_on(&format!("{} is a copy of {}", to.display(), path.display()));
    // Not beside the copy: with both, a thief could sign in with the keys in the copy.
    say_on(&format!(
        "the server's secret is not in it: keep {} (or the file that --secret-file names) as well, somewhere else; without it \
         API keys and the secrets of webhooks are lost",
        store.data.join(SECRET_FILE).display()
    ));
    tell(&copied, &folder)
}

/// The payloads get their name first: a database that bears its name has them beside it.
async fn put_in_place(staged: StagedBackup, to: &Path, folder: &Path) -> anyhow::Result<()> {
    let copied = beside(staged.path());
    let has_payloads = copied.is_dir();
    if has_payloads {
        std::fs::rename(&copied, folder).map_err(|error| unplaced(error, to, folder))?;
    }
    let placed = staged.place().await;
    if placed.is_err() && has_payloads {
        // Without the database they are of no use, and would be in the way of the next backup.
        let _ = std::fs::remove_dir_all(folder);
    }
    placed.with_context(|| format!("no backup was made at {}", to.display()))
}

/// A folder that was not there when this backup began is another one's, which was faster.
fn unplaced(error: io::Error, to: &Path, folder: &Path) -> anyhow::Error {
    if matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists) {
        return anyhow::anyhow!(
            "no backup was made: another backup to {} is under way at the same time, or has just been put in place, and {} is \
             its own. Take that one once the file is there, or name another file for this one",
            to.display(),
            folder.display()
        );
    }
    anyhow::Error::from(error).context(format!("cannot make {}", folder.display()))
}

/// Beside the copy, under the name that it has for now.
async fn payloads(store: &StoreArg, place: &PlaceArgs, staged: &StagedBackup) -> anyhow::Result<CopiedPayloads> {
    let copy = staged.open_to_read(open::options_to_read()).await?;
    let (references, total) = copy.payloads_total().await?;
    if references == 0 {
        copy.close().await;
        return Ok(CopiedPayloads::None);
    }
    if let Some(bucket) = place.bucket() {
        copy.close().await;
        return Ok(CopiedPayloads::StayInBucket { bucket: bucket.to_owned(), references, bytes: total });
    }
    let from = place.open_to_read(&store.data)?;
    let target = Objects::folder(&beside(staged.path()))?;
    let live = open::store_to_read(&store.url()).await?;
    let survey = back_up(&copy, &live, &from, &target, progress("payloads", Some(references))).await?;
    live.close().await;
    copy.close().await;
    Ok(CopiedPayloads::Copied(survey))
}

fn tell(copied: &CopiedPayloads, folder: &Path) -> anyhow::Result<()> {
    match copied {
        CopiedPayloads::None => say_on("it refers to no payloads beside it"),
        CopiedPayloads::StayInBucket { bucket, references, bytes: total } => {
            say_on(&format!("it refers to payloads ({references} times, {}) that stay in {bucket}", bytes(*total)));
            say_on(
                "the bucket keeps them only as long as the live store needs them: have it keep versions of what is deleted, \
                 or copy it now, and keep that as long as this copy",
            );
        }
        CopiedPayloads::Copied(survey) => {
            say_on(&format!(
                "{} holds its {} payloads, {}, each held against its hash",
                folder.display(),
                survey.objects,
                bytes(survey.bytes)
            ));
            if survey.gone > 0 {
                say_on(&format!("{} more went with their runs meanwhile, by retention", survey.gone));
            }
            tell_lost(survey);
            anyhow::ensure!(
                survey.lost_total == 0,
                "{} references are to payloads that were lost before: what needs them will fail",
                survey.lost_total
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use interlock_store::Store;

    use super::*;

    #[tokio::test]
    async fn a_backup_that_comes_second_says_so_and_leaves_the_first_one_alone() {
        let data = std::env::temp_dir().join(format!("interlock-two-backups-{}", std::process::id()));
        std::fs::create_dir_all(&data).unwrap();
        let (path, to) = (data.join("interlock.db"), data.join("monday.db"));
        let folder = beside(&to);
        Store::open(&StoreUrl::Sqlite(path.clone()), open::options_to_read()).await.unwrap().close().await;
        let second = StagedBackup::make(&path, &to).await.unwrap();
        std::fs::create_dir(beside(second.path())).unwrap();
        // Meanwhile the first one gets its names.
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("object"), "of the first").unwrap();
        std::fs::write(&to, "the first").unwrap();
        let refused = put_in_place(second, &to, &folder).await.unwrap_err().to_string();
        assert!(refused.contains("another backup to") && refused.contains("name another file"), "{refused}");
        assert!(!refused.contains("os error"), "{refused}");
        assert_eq!(std::fs::read(&to).unwrap(), b"the first");
        assert_eq!(std::fs::read(folder.join("object")).unwrap(), b"of the first");
        std::fs::remove_dir_all(&data).unwrap();
    }
}
