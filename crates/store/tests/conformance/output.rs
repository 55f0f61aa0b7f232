//! What steps write while they run: stored once, in order, for the attempt that runs, up to a limit.

use interlock_core::decide::Command;
use interlock_core::ids::SessionId;
use interlock_core::limits::OUTPUT_STATUS_BYTES_MAX;
use interlock_core::run::Run;
use interlock_core::time::Millis;
use interlock_core::work::AttemptRef;
use interlock_core::work::output::{OutputChunk, OutputStream, OutputTaken};
use interlock_store::{AppendOutput, OutputAppended, OutputPlace, OutputRow, Store, Sweep};

use crate::harness::{NOW, StartOptions, TestDatabase, World, command, completion, fresh, tasks};

crate::on_every_store!(
    a_batch_that_comes_twice_is_stored_once,
    output_is_cut_at_its_limit_with_a_mark,
    only_the_attempt_that_runs_writes,
    two_servers_store_each_chunk_once,
    output_goes_with_its_run,
);

async fn running(world: &World) -> (Run, AttemptRef) {
    let mut run = world.start(&tasks(2), StartOptions::default()).await;
    let claim = command(&run, Command::Claim { session: SessionId(fresh()) }, NOW);
    world.apply(&mut run, claim).await;
    let at = AttemptRef { tenant: world.tenant, run: run.id, position: 0, attempt: 1 };
    (run, at)
}

fn chunk(seq: u64, stream: OutputStream, text: &str) -> OutputChunk {
    OutputChunk { seq, stream, text: text.to_owned() }
}

fn lines(from: u64, texts: &[&str]) -> Vec<OutputChunk> {
    (from..).zip(texts).map(|(seq, text)| chunk(seq, OutputStream::Stdout, text)).collect()
}

async fn append(store: &Store, at: AttemptRef, chunks: Vec<OutputChunk>, bytes_max: u64) -> OutputAppended {
    store.write(AppendOutput { at, chunks, bytes_max, now: NOW }).await.unwrap()
}

const fn taken(next_seq: u64, cut: bool) -> OutputAppended {
    OutputAppended::Taken(OutputTaken { next_seq, cut })
}

async fn all(world: &World, at: AttemptRef) -> Vec<OutputRow> {
    let place = (at.position, OutputPlace::default());
    world.store.for_tenant(at.tenant).output_after(at.run, place, 100).await.unwrap()
}

fn texts(rows: &[OutputRow]) -> Vec<&str> {
    rows.iter().map(|row| row.text.as_str()).collect()
}

async fn a_batch_that_comes_twice_is_stored_once(database: &TestDatabase) {
    let world = database.world().await;
    let (_, at) = running(&world).await;
    assert_eq!(append(&world.store, at, lines(1, &["a", "b"]), 100).await, taken(3, false));
    assert_eq!(append(&world.store, at, lines(1, &["a", "b"]), 100).await, taken(3, false), "its answer was lost");
    assert_eq!(append(&world.store, at, lines(2, &["b", "c\0ü"]), 100).await, taken(4, false), "half of it is new");
    assert_eq!(append(&world.store, at, lines(6, &["f"]), 100).await, OutputAppended::Gap { expected: 4 });
    let rows = all(&world, at).await;
    assert_eq!(texts(&rows), ["a", "b", "c\0ü"]);
    assert_eq!(rows.iter().map(|row| row.seq).collect::<Vec<_>>(), [1, 2, 3]);
    let after = (0, OutputPlace { attempt: 1, seq: 2 });
    let rest = world.store.for_tenant(at.tenant).output_of_attempt(at.run, after, 10).await.unwrap();
    assert_eq!(texts(&rest), ["c\0ü"]);
    let heads = world.store.output_heads(at.tenant, at.run, 10).await.unwrap();
    assert_eq!(heads.iter().map(|head| (head.attempt, head.next_seq, head.bytes)).collect::<Vec<_>>(), [(1, 4, 6)]);
    let other = world.store.for_tenant(crate::harness::tenant_id(2));
    assert_eq!(other.output_after(at.run, (0, OutputPlace::default()), 10).await.unwrap(), []);
}

async fn output_is_cut_at_its_limit_with_a_mark(database: &TestDatabase) {
    let world = database.world().await;
    let (_, at) = running(&world).await;
    let mut batch = lines(1, &["1234", "56üü", "never"]);
    batch.push(chunk(4, OutputStream::Status, "exit code 0\n"));
    // The limit falls into a character, which is not halved.
    assert_eq!(append(&world.store, at, batch.clone(), 9).await, taken(5, true));
    assert_eq!(append(&world.store, at, batch, 9).await, taken(5, true));
    assert_eq!(append(&world.store, at, lines(5, &["never"]), 9).await, taken(6, true));
    let told = vec![chunk(6, OutputStream::Status, "killed\n")];
    assert_eq!(append(&world.store, at, told, 9).await, taken(7, true));
    let rows = all(&world, at).await;
    let mark = "[output cut: the first 8 bytes are kept]\n";
    assert_eq!(texts(&rows), ["1234", "56ü", mark, "exit code 0\n", "killed\n"]);
    assert!(rows.is_sorted_by_key(|row| row.seq) && rows[2].stream == OutputStream::Status);

    let much = "x".repeat(OUTPUT_STATUS_BYTES_MAX as usize);
    let told = vec![chunk(7, OutputStream::Status, &much)];
    assert_eq!(append(&world.store, at, told, 9).await, taken(8, true));
    assert_eq!(all(&world, at).await.len(), rows.len(), "not even the worker's own words are kept without end");
}

async fn only_the_attempt_that_runs_writes(database: &TestDatabase) {
    let world = database.world().await;
    let (mut run, at) = running(&world).await;
    let late = AttemptRef { attempt: 2, ..at };
    assert_eq!(append(&world.store, late, lines(1, &["?"]), 9).await, OutputAppended::Stale { current: 1 });
    let elsewhere = AttemptRef { position: 1, ..at };
    assert_eq!(append(&world.store, elsewhere, lines(1, &["?"]), 9).await, OutputAppended::Stale { current: 1 });
    let foreign = AttemptRef { tenant: crate::harness::tenant_id(2), ..at };
    assert_eq!(append(&world.store, foreign, lines(1, &["?"]), 9).await, OutputAppended::Stale { current: 1 });
    let done = completion(&run, NOW);
    world.apply(&mut run, done).await;
    assert!(matches!(append(&world.store, at, lines(1, &["?"]), 9).await, OutputAppended::Stale { .. }));
    assert_eq!(all(&world, at).await, []);
}

async fn two_servers_store_each_chunk_once(database: &TestDatabase) {
    let world = database.world().await;
    let second = database.second(&world.store).await;
    let (_, at) = running(&world).await;
    for seq in 1..20 {
        let text = seq.to_string();
        let batch = lines(seq, &[&text]);
        let (one, two) = tokio::join!(append(&world.store, at, batch.clone(), 100), append(&second, at, batch, 100));
        assert_eq!((one, two), (taken(seq + 1, false), taken(seq + 1, false)));
    }
    let rows = all(&world, at).await;
    assert_eq!(rows.iter().map(|row| row.text.parse().unwrap()).collect::<Vec<u64>>(), (1..20).collect::<Vec<_>>());
}

async fn output_goes_with_its_run(database: &TestDatabase) {
    let world = database.world().await;
    let mut run = world.start(&tasks(1), StartOptions::default()).await;
    let claim = command(&run, Command::Claim { session: SessionId(fresh()) }, NOW);
    world.apply(&mut run, claim).await;
    let at = AttemptRef { tenant: world.tenant, run: run.id, position: 0, attempt: 1 };
    append(&world.store, at, lines(1, &["a"]), 100).await;
    let done = completion(&run, NOW);
    world.apply(&mut run, done).await;
    world.store.write(Sweep::new(NOW + Millis::from_hours(24 * 89))).await.unwrap();
    assert_eq!(all(&world, at).await.len(), 1);
    world.store.write(Sweep::new(NOW + Millis::from_hours(24 * 91))).await.unwrap();
    assert_eq!(all(&world, at).await, []);
    assert_eq!(world.store.output_heads(at.tenant, at.run, 10).await.unwrap(), []);
}
