//! Payloads and backups: what the database refers to comes along, comes back, and is named where it is damaged.

use std::path::Path;

use interlock_core::ids::{RunId, ServerId};
use interlock_core::json::{Hash, Json};
use interlock_core::plan::StepSpec;
use interlock_core::state::RunState;
use interlock_engine::payloads::copy::{back_up, bring_back};
use interlock_engine::payloads::survey::{Depth, survey};
use interlock_engine::payloads::{Objects, PayloadError};
use interlock_store::{KeepPayload, Options, PayloadHolder, PayloadRow, ReleasePayload, Store, StoreUrl};

use crate::harness::{Database, done, ends, engine_with, options, plan, start, stop, tenant, work};
use crate::on_both;
use crate::payloads::{Folder, long};

fn server() -> Options {
    Options::new(ServerId(options().ids.fresh()))
}

async fn to_read(path: &Path) -> Store {
    Store::open_to_read(&StoreUrl::Sqlite(path.to_owned()), server()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_backup_refers_to_comes_back_with_it() {
    let database = Database::sqlite();
    let StoreUrl::Sqlite(path) = database.url.clone() else { unreachable!() };
    let (folder, beside) = (Folder::new(), Folder::new());
    let engine = engine_with(&database, folder.options()).await;
    let tenant = tenant(&engine, |_| {}).await;
    let once = plan(vec![StepSpec::task("only", "t")]);
    let worker = work(&engine, 1, |_| async { done(&long("o")) });
    let run = engine.runs().start(start(tenant, &once, &long("i"))).await.unwrap().run;
    assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
    worker.abort();
    // On record, and its owner is not committed yet: there is nothing to copy yet.
    let row = PayloadRow { tenant, owner: RunId(engine.fresh_id()).into(), sha256: Hash::of(b"on its way") };
    let keep = KeepPayload { row, bytes: 10, at: engine.now() };
    engine.store().write(keep).await.unwrap();

    let copied = path.with_extension("backup");
    interlock_store::backup_file(&path, &copied).await.unwrap();
    let (copy, live) = (to_read(&copied).await, to_read(&path).await);
    let from = Objects::folder(&folder.0).unwrap();
    let to = Objects::folder(&beside.0).unwrap();
    let mut heard = Vec::new();
    let taken = back_up(&copy, &live, &from, &to, |progress| heard.push(progress)).await.unwrap();
    let bytes = (long("i").len() + long("o").len()) as u64;
    assert_eq!((taken.objects, taken.bytes, taken.lost_total, taken.gone), (2, bytes, 0, 0));
    assert_eq!(heard.last().map(|progress| (progress.references, progress.bytes)), Some((3, bytes)));
    stop(engine).await;
    std::fs::remove_dir_all(&folder.0).unwrap();

    let restored = Database::sqlite();
    let place = Folder::new();
    let objects = Objects::folder(&place.0).unwrap();
    let brought = bring_back(&to, &objects, |_| {}).await.unwrap();
    assert_eq!((brought.objects, brought.bytes, brought.damaged_total), (2, bytes, 0));
    let again = bring_back(&to, &objects, |_| {}).await.unwrap();
    assert_eq!((again.objects, again.kept), (0, 2), "what is there and whole stays");
    // Of the same length, and not the same: only its hash tells.
    let altered = place.objects().remove(0);
    std::fs::write(&altered, long("x")).unwrap();
    assert_eq!(bring_back(&to, &objects, |_| {}).await.unwrap().objects, 1, "and what is not is mended");

    interlock_store::restore(Some(&copied), &restored.url, server()).await.unwrap();
    let engine = engine_with(&restored, place.options()).await;
    let found = survey(engine.store(), &objects, Depth::Whole, |_| {}).await.unwrap();
    assert_eq!((found.objects, found.lost_total), (2, 0));
    let row = engine.store().run_overview(tenant, run).await.unwrap().unwrap();
    let payloads = engine.payloads().unwrap();
    assert_eq!(payloads.fetch(tenant, &row.inputs).await.unwrap(), Json::trusted(long("i")));
    assert_eq!(payloads.fetch(tenant, &row.output.unwrap()).await.unwrap(), Json::trusted(long("o")));
    stop(engine).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_retention_took_meanwhile_is_not_lost_and_what_is_damaged_is_named() {
    let database = Database::sqlite();
    let StoreUrl::Sqlite(path) = database.url.clone() else { unreachable!() };
    let (folder, beside) = (Folder::new(), Folder::new());
    let engine = engine_with(&database, folder.options()).await;
    let tenant = tenant(&engine, |_| {}).await;
    let once = plan(vec![StepSpec::task("only", "t")]);
    let mut runs = Vec::new();
    for letter in ["g", "m", "a"] {
        runs.push(engine.runs().start(start(tenant, &once, &long(letter))).await.unwrap().run);
    }
    let copied = path.with_extension("backup");
    interlock_store::backup_file(&path, &copied).await.unwrap();
    // What a sweep does once the run is gone.
    let gone = Hash::of(long("g").as_bytes());
    let row = PayloadRow { tenant, owner: runs[0].into(), sha256: gone };
    let before = engine.now() + interlock_core::time::Millis::from_hours(1);
    engine.store().write(ReleasePayload { row, before }).await.unwrap();
    let object = |letter: &str| {
        let hash = Hash::of(long(letter).as_bytes()).to_string();
        folder.objects().into_iter().find(|path| path.ends_with(&hash)).unwrap()
    };
    std::fs::remove_file(object("g")).unwrap();
    std::fs::remove_file(object("m")).unwrap();
    std::fs::write(object("a"), long("b")).unwrap();

    let (copy, live) = (to_read(&copied).await, to_read(&path).await);
    let (from, to) = (Objects::folder(&folder.0).unwrap(), Objects::folder(&beside.0).unwrap());
    let taken = back_up(&copy, &live, &from, &to, |_| {}).await.unwrap();
    assert_eq!((taken.objects, taken.gone, taken.lost_total), (0, 1, 2));
    let sha256 = |letter: &str| Hash::of(long(letter).as_bytes());
    let named: Vec<_> = taken.lost.iter().map(|lost| (lost.holder, lost.error.clone())).collect();
    assert!(named.contains(&(PayloadHolder::Run(runs[1]), PayloadError::Missing { sha256: sha256("m") })), "{named:?}");
    assert!(named.contains(&(PayloadHolder::Run(runs[2]), PayloadError::Altered { sha256: sha256("a") })), "{named:?}");
    stop(engine).await;

    // In the backup's own folder: one that is not what its name says, and one that has no such name.
    let name = "00".repeat(32);
    let odd = beside.0.join(tenant.0.simple().to_string()).join("00");
    std::fs::create_dir_all(&odd).unwrap();
    std::fs::write(odd.join(&name), "something else").unwrap();
    std::fs::write(beside.0.join("note.txt"), "hello").unwrap();
    let place = Folder::new();
    let brought = bring_back(&to, &Objects::folder(&place.0).unwrap(), |_| {}).await.unwrap();
    assert_eq!((brought.objects, brought.damaged_total), (0, 2));
    assert!(brought.damaged.iter().any(|damaged| damaged.ends_with(&name)), "{:?}", brought.damaged);
    assert!(place.objects().is_empty());
}

on_both! {
    async fn what_was_recorded_and_never_used_is_not_missed(database: &Database) {
        let folder = Folder::new();
        let engine = engine_with(database, folder.options()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let worker = work(&engine, 1, |_| async { done(&long("o")) });
        let once = plan(vec![StepSpec::task("only", "t")]);
        let run = engine.runs().start(start(tenant, &once, &long("i"))).await.unwrap().run;
        assert_eq!(ends(&engine, tenant, run).await, RunState::Succeeded);
        worker.abort();
        // The connection broke after the record: neither the object was written nor the run changed.
        let row = PayloadRow { tenant, owner: run.into(), sha256: Hash::of(b"never written") };
        let keep = KeepPayload { row, bytes: 13, at: engine.now() };
        engine.store().write(keep).await.unwrap();
        let objects = Objects::folder(&folder.0).unwrap();
        let found = survey(engine.store(), &objects, Depth::Length, |_| {}).await.unwrap();
        assert_eq!((found.objects, found.lost_total, found.unused), (2, 0, 1));
        // What a step or the run itself uses is missed all the same.
        for object in folder.objects() {
            std::fs::remove_file(object).unwrap();
        }
        let found = survey(engine.store(), &objects, Depth::Length, |_| {}).await.unwrap();
        assert_eq!((found.objects, found.lost_total, found.unused), (0, 2, 1));
        stop(engine).await;
    }

    async fn a_survey_tells_missing_from_altered_and_shared_ones_once(database: &Database) {
        let folder = Folder::new();
        let engine = engine_with(database, folder.options()).await;
        let tenant = tenant(&engine, |_| {}).await;
        let once = plan(vec![StepSpec::task("only", "t")]);
        // More references to one object than a page has room for.
        for _ in 0..300 {
            engine.runs().start(start(tenant, &once, &long("s"))).await.unwrap();
        }
        let other = engine.runs().start(start(tenant, &once, &long("z"))).await.unwrap().run;
        let objects = Objects::folder(&folder.0).unwrap();
        let look = async |depth| survey(engine.store(), &objects, depth, |_| {}).await.unwrap();
        let found = look(Depth::Whole).await;
        assert_eq!((found.objects, found.lost_total), (2, 0), "an object is looked at once");
        let shared = Hash::of(long("s").as_bytes());
        let path = |hash: Hash| folder.objects().into_iter().find(|path| path.ends_with(hash.to_string())).unwrap();
        std::fs::write(path(shared), long("x")).unwrap();
        assert_eq!(look(Depth::Length).await.lost_total, 0, "its length is right");
        let found = look(Depth::Whole).await;
        assert_eq!((found.objects, found.lost_total, found.lost.len()), (1, 300, 100), "named up to a bound");
        std::fs::remove_file(path(shared)).unwrap();
        assert_eq!(look(Depth::Length).await.lost[0].error, PayloadError::Missing { sha256: shared });
        let last = Hash::of(long("z").as_bytes());
        std::fs::write(path(last), "short").unwrap();
        let found = look(Depth::Length).await;
        assert_eq!(found.lost_total, 301);
        let named = found.lost.iter().any(|lost| lost.holder == PayloadHolder::Run(other));
        assert_eq!(named, last.0 < shared.0, "they come in the order of their hashes");
        stop(engine).await;
    }
}
