//! Reads calls from the stream, and sees to it that each is answered once.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::response::IntoResponse as _;
use interlock_broker::message::AnswerEntry;
use interlock_broker::{
    AnswerStream, BrokerError, CallStream, Connection, SealedAs, StreamEntry, answer_stream, call_stream, fresh_name,
    limits as broker_limits,
};
use interlock_protocol::channel::limits as channel_limits;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_util::task::TaskTracker;

use super::Broker;
use super::answer::GivenAnswer;
use super::call::BelievedCall;
use super::outage::RejectedMessages;
use super::recent::{KnownCall, RecentCalls, WrittenAnswer};
use crate::api_error::ApiError;
use crate::limits;
use crate::metrics::BrokerResult;
use crate::routes::agent::broker::disabled;
use crate::routes::agent::calls::Calls;
use crate::seats::{Seat, Seats};
use crate::state::AppState;

/// What the calls that are under way may hold in memory, and what is read at once.
const BYTES_MAX: usize = 64 << 20;
const BATCH_BYTES: usize =
    broker_limits::READ_COUNT_MAX * (broker_limits::CALL_BYTES_MAX + broker_limits::TICKET_BYTES_MAX);
/// The least that a call counts for.
const CALL_BYTES_MIN: usize = 1 << 10;
/// How often a server says of the calls that it works on that it lives, and looks for those of servers that do not.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After so long a server that says nothing is dead.
const IDLE_MS: u64 = 5_000;
/// Ids in one command.
const IDS_MAX: usize = 1_000;
/// Every so many looks the stream is trimmed, and servers that were silent for so long leave the group.
const TRIM_EVERY: u32 = 10;
const FORGOTTEN_MS: u64 = 600_000;
/// The stream was flushed: it is made again after a moment.
const LOST_PAUSE: Duration = Duration::from_millis(5);
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// What calls that are under way get to end in when the server stops.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

const _: () = assert!(BATCH_BYTES < BYTES_MAX);

#[derive(Clone)]
pub struct Consumer(Arc<SharedConsumer>);

struct SharedConsumer {
    state: AppState,
    broker: Arc<Broker>,
    calls: Calls,
    stream: CallStream,
    /// Takes answers; none while the broker is not reached.
    writing: Mutex<Option<Connection>>,
    recent: Mutex<RecentCalls>,
    under_way: Mutex<EntriesUnderWay>,
    disbelieved: Mutex<RejectedMessages>,
    /// Calls that are worked on at once, of all and of one tenant; and the bytes that they hold.
    seats: Arc<Seats>,
    room: Arc<Semaphore>,
    tasks: TaskTracker,
}

/// The entries that are being worked on, and how many each channel has.
#[derive(Default)]
struct EntriesUnderWay {
    ids: BTreeSet<String>,
    by_channel: HashMap<Arc<str>, usize>,
}

impl EntriesUnderWay {
    /// False where the channel has as many as it may.
    fn add(&mut self, call: &BelievedCall) -> bool {
        self.ids.insert(call.entry.clone());
        let count = self.by_channel.entry(Arc::clone(&call.name.channel)).or_default();
        *count += 1;
        *count <= channel_limits::CALLS_MAX
    }

    fn remove(&mut self, entry: &str, channel: &Arc<str>) {
        self.ids.remove(entry);
        if let Some(count) = self.by_channel.get_mut(channel) {
            *count -= 1;
            if *count == 0 {
                self.by_channel.remove(channel);
            }
        }
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Consumer {
    pub fn new(state: AppState, broker: Arc<Broker>) -> Self {
        let stream = CallStream { name: call_stream(&broker.installation), consumer: fresh_name() };
        Self(Arc::new(SharedConsumer {
            calls: Calls::new(&state),
            stream,
            writing: Mutex::default(),
            recent: Mutex::default(),
            under_way: Mutex::default(),
            disbelieved: Mutex::default(),
            seats: Seats::new(limits::BROKER_CALLS_MAX, limits::BROKER_CALLS_PER_TENANT_MAX),
            room: Arc::new(Semaphore::new(BYTES_MAX)),
            tasks: TaskTracker::new(),
            state,
            broker,
        }))
    }

    /// Until the server stops. A broker that cannot be reached is tried again and again.
    pub async fn run(self) {
        let Self(shared) = self;
        let stopping = shared.state.shutdown().clone();
        let _connected = shared.broker.connected_while_held();
        let (mut pause, mut was_said, mut was_too_long) = (PAUSE_FIRST, false, false);
        while let Some(error) = stopping.run_until_cancelled(shared.consume(was_too_long)).await {
            if shared.broker.is_connected() {
                pause = PAUSE_FIRST;
            }
            *locked(&shared.writing) = None;
            shared.broker.lost(&error, &mut was_said);
            was_too_long = matches!(error, BrokerError::TooLong);
            if stopping.run_until_cancelled(sleep(pause)).await.is_none() {
                break;
            }
            pause = (pause * 2).min(PAUSE_MAX);
        }
        shared.tasks.close();
        // Who is not done by then is asked again elsewhere.
        let _ = timeout(LAST_ANSWERS, shared.tasks.wait()).await;
        let writing = locked(&shared.writing).take();
        if let Some(writing) = writing {
            // The others forget this one anyway, after a while.
            let _ = timeout(LAST_ANSWERS, shared.stream.leave(&writing)).await;
        }
    }
}

impl SharedConsumer {
    /// Connects, and reads until the broker is lost.
    async fn consume(self: &Arc<Self>, was_too_long: bool) -> BrokerError {
        let opened = async {
            let reading = Connection::open(&self.broker.address).await?;
            let writing = Connection::open(&self.broker.address).await?;
            self.stream.make(&writing).await?;
            if was_too_long {
                // Whatever it was, it would come again.
                self.stream.drop_taken(&writing).await?;
            }
            Ok::<_, BrokerError>((reading, writing))
        };
        let (reading, writing) = match opened.await {
            Ok(opened) => opened,
            Err(error) => return error,
        };
        *locked(&self.writing) = Some(writing.clone());
        self.broker.reached();
        tokio::select! {
            error = self.read(&reading, &writing) => error,
            error = self.look_after(&writing) => error,
        }
    }

    async fn read(self: &Arc<Self>, reading: &Connection, writing: &Connection) -> BrokerError {
        loop {
            // Nothing more is read while there is no room.
            let room = Arc::clone(&self.room).acquire_many_owned(BATCH_BYTES as u32).await;
            let Ok(room) = room else { return BrokerError::StreamLost };
            match self.stream.read(reading, broker_limits::READ_COUNT_MAX).await {
                Ok(entries) => self.take(entries, room, writing).await,
                Err(BrokerError::StreamLost) => {
                    sleep(LOST_PAUSE).await;
                    if let Err(error) = self.stream.make(writing).await {
                        return error;
                    }
                }
                Err(error) => return error,
            }
        }
    }

    /// Keeps what is under way from being taken by other servers, takes what dead ones have left, and tidies up.
    async fn look_after(self: &Arc<Self>, writing: &Connection) -> BrokerError {
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut count = 0_u32;
        loop {
            looks.tick().await;
            count = count.wrapping_add(1);
            match self.look(writing, count.is_multiple_of(TRIM_EVERY)).await {
                // The reader makes it again.
                Ok(()) | Err(BrokerError::StreamLost) => {}
                // Of a stream that was flushed in between.
                Err(BrokerError::Refused(what)) => tracing::debug!(what, "the broker refuses a command"),
                Err(error) => return error,
            }
        }
    }

    async fn look(self: &Arc<Self>, writing: &Connection, trims: bool) -> Result<(), BrokerError> {
        let under_way: Vec<String> = locked(&self.under_way).ids.iter().cloned().collect();
        for ids in under_way.chunks(IDS_MAX) {
            self.stream.keep(writing, ids).await?;
        }
        if let Ok(room) = Arc::clone(&self.room).try_acquire_many_owned(BATCH_BYTES as u32) {
            let entries = self.stream.reclaim(writing, IDLE_MS, broker_limits::READ_COUNT_MAX).await?;
            self.take(entries, room, writing).await;
        }
        if trims {
            self.stream.trim(writing).await?;
            self.stream.forget_dead(writing, FORGOTTEN_MS).await?;
        }
        Ok(())
    }

    /// Begins with what is believed and new. Everything else is dropped at once.
    async fn take(self: &Arc<Self>, entries: Vec<StreamEntry>, mut room: OwnedSemaphorePermit, writing: &Connection) {
        let mut dropped = Vec::new();
        for entry in entries {
            let bytes = entry.length().max(CALL_BYTES_MIN);
            // No worker writes an entry that is longer than this.
            let Some(held) = room.split(bytes) else {
                self.disbelieve(BrokerResult::Unreadable);
                dropped.push(entry.id);
                continue;
            };
            dropped.extend(self.begin(entry, held));
        }
        if let Err(error) = self.stream.done(writing, &dropped).await {
            tracing::debug!(%error, "messages that are not believed could not be dropped yet");
        }
    }

    /// The entry's id where it is done with already.
    fn begin(self: &Arc<Self>, entry: StreamEntry, held: OwnedSemaphorePermit) -> Option<String> {
        let call = match BelievedCall::read(entry, &self.broker.sealer, self.state.now()) {
            Ok(call) => call,
            Err((id, result)) => {
                self.disbelieve(result);
                return Some(id);
            }
        };
        let known = locked(&self.recent).begin(&call.name, Instant::now());
        match known {
            KnownCall::UnderWay => {
                self.state.metrics().broker_message(BrokerResult::Duplicate);
                Some(call.entry)
            }
            KnownCall::Answered(answer) => {
                self.state.metrics().broker_message(BrokerResult::Duplicate);
                let shared = Arc::clone(self);
                self.tasks.spawn(async move {
                    let _held = held;
                    // A worker that does not get it asks again.
                    let _ = shared.write(&call, &answer).await;
                });
                None
            }
            KnownCall::New => {
                let fits = locked(&self.under_way).add(&call);
                let (entry, channel) = (call.entry.clone(), Arc::clone(&call.name.channel));
                let under_way = UnderWay { shared: Arc::clone(self), entry, channel };
                let seat = self.seats.take(call.tenant).ok().filter(|_| fits);
                let result = if seat.is_some() { BrokerResult::Handled } else { BrokerResult::Refused };
                self.state.metrics().broker_message(result);
                self.tasks.spawn(under_way.work(call, seat, held));
                None
            }
        }
    }

    fn disbelieve(&self, result: BrokerResult) {
        self.state.metrics().broker_message(result);
        locked(&self.disbelieved).met(result, Instant::now());
    }

    /// What a request would be answered.
    async fn answer(&self, call: &BelievedCall, seat: Option<Seat>) -> GivenAnswer {
        let Some(_seat) = seat else {
            let error = ApiError::new(
                axum::http::StatusCode::SERVICE_UNAVAILABLE,
                "OVERLOADED",
                "too many calls of this worker, of its tenant or of all are under way over the broker; try again",
            );
            return GivenAnswer::of(error.into_response()).await;
        };
        let response = match self.state.tenants().has_broker(call.tenant).await {
            Ok(true) => match call.request() {
                Some(request) => self.calls.answer(request).await,
                None => ApiError::no_such_route().into_response(),
            },
            Ok(false) => disabled().into_response(),
            Err(error) => ApiError::from(error).into_response(),
        };
        GivenAnswer::of(response).await
    }

    /// Writes an answer to its worker, and has its call done with.
    async fn write(&self, call: &BelievedCall, answer: &WrittenAnswer) -> Result<(), BrokerError> {
        let writing = locked(&self.writing).clone();
        let writing = writing.ok_or_else(|| BrokerError::Unreachable("it is being connected to".to_owned()))?;
        let (channel, key) = (&*call.name.channel, &*call.name.key);
        let sealed_as = SealedAs::Answer { channel, kind: answer.kind.as_str(), call: key };
        let sealed = call.sealer.seal(sealed_as, &answer.plain);
        let to = AnswerStream { name: answer_stream(&self.broker.installation, channel) };
        let entry = AnswerEntry { kind: answer.kind, call: key, sealed: &sealed };
        self.stream.answer(&writing, &to, &entry, &call.entry).await
    }
}

/// An entry that is being worked on: until this is dropped other servers leave it alone.
struct UnderWay {
    shared: Arc<SharedConsumer>,
    entry: String,
    channel: Arc<str>,
}

impl UnderWay {
    async fn work(self, call: BelievedCall, seat: Option<Seat>, held: OwnedSemaphorePermit) {
        let shared = &self.shared;
        let given = shared.answer(&call, seat).await;
        drop(held);
        let answer = given.written(&shared.state, &call).await;
        // It may have arrived all the same, so nothing of it is given back as undelivered: its worker asks again and gets
        // this answer, or does not list what it was given, which is then released.
        if let Err(error) = shared.write(&call, &answer).await {
            tracing::debug!(%error, "an answer may not have been written: its worker asks again");
        }
        locked(&shared.recent).answered(&call.name, answer);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        locked(&self.shared.under_way).remove(&self.entry, &self.channel);
    }
}
