//! Every command that is sent to a broker.
//!
//! Calls stand in one stream, read by one group whose members are the servers; what has been answered is deleted. Each worker
//! has a stream of answers, which it alone reads.

use redis::{Value, cmd, pipe};

use crate::connection::{BrokerError, Connection};
use crate::entry::{StreamEntry, array, bytes, entries, entries_of_only_stream};
use crate::limits;
use crate::message::{AnswerEntry, CallEntry};

/// The group of all servers.
const GROUP: &str = "servers";

pub fn call_stream(installation: &str) -> String {
    format!("interlock:{installation}:calls")
}

pub fn answer_stream(installation: &str, channel: &str) -> String {
    format!("interlock:{installation}:answers:{channel}")
}

/// The stream of calls, as one server reads it.
#[derive(Debug, Clone)]
pub struct CallStream {
    pub name: String,
    /// This server among those of the group.
    pub consumer: String,
}

impl CallStream {
    /// Makes the stream and its group, where they are not there. What was written before is read.
    pub async fn make(&self, broker: &Connection) -> Result<(), BrokerError> {
        let made: Result<(), _> =
            broker.query(cmd("XGROUP").arg("CREATE").arg(&self.name).arg(GROUP).arg("0").arg("MKSTREAM")).await;
        match made {
            Err(BrokerError::Refused(what)) if what.contains("BUSYGROUP") => Ok(()),
            made => made,
        }
    }

    /// Waits for calls that no server of the group has taken yet, and takes them.
    pub async fn read(&self, broker: &Connection, count: usize) -> Result<Vec<StreamEntry>, BrokerError> {
        let mut read = cmd("XREADGROUP");
        read.arg("GROUP").arg(GROUP).arg(&self.consumer).arg("COUNT").arg(count.min(limits::READ_COUNT_MAX));
        read.arg("BLOCK").arg(limits::READ_WAIT.as_millis() as u64).arg("STREAMS").arg(&self.name).arg(">");
        Ok(entries_of_only_stream(broker.query(&read).await?))
    }

    /// Takes calls over that another server took and has not touched for so long: it is dead.
    pub async fn reclaim(
        &self,
        broker: &Connection,
        idle_ms: u64,
        count: usize,
    ) -> Result<Vec<StreamEntry>, BrokerError> {
        let mut claim = cmd("XAUTOCLAIM");
        claim.arg(&self.name).arg(GROUP).arg(&self.consumer).arg(idle_ms).arg("0-0");
        claim.arg("COUNT").arg(count.min(limits::READ_COUNT_MAX));
        let reply: Value = broker.query(&claim).await?;
        Ok(array(reply).and_then(|parts| parts.into_iter().nth(1)).map(entries).unwrap_or_default())
    }

    /// Says that this server is still working on these calls, so that no other server takes them over.
    pub async fn keep(&self, broker: &Connection, ids: &[String]) -> Result<(), BrokerError> {
        if ids.is_empty() {
            return Ok(());
        }
        let mut claim = cmd("XCLAIM");
        claim.arg(&self.name).arg(GROUP).arg(&self.consumer).arg(0).arg(ids).arg("JUSTID");
        broker.query::<Value>(&claim).await.map(drop)
    }

    /// These calls are done with.
    pub async fn done(&self, broker: &Connection, ids: &[String]) -> Result<(), BrokerError> {
        if ids.is_empty() {
            return Ok(());
        }
        let mut both = pipe();
        both.cmd("XACK").arg(&self.name).arg(GROUP).arg(ids).cmd("XDEL").arg(&self.name).arg(ids);
        broker.query_all::<Value>(&both).await.map(drop)
    }

    /// Drops what this server has taken and cannot read.
    pub async fn drop_taken(&self, broker: &Connection) -> Result<(), BrokerError> {
        let mut pending = cmd("XPENDING");
        pending.arg(&self.name).arg(GROUP).arg("-").arg("+").arg(limits::READ_COUNT_MAX).arg(&self.consumer);
        let reply: Value = broker.query(&pending).await?;
        let of_each = array(reply).unwrap_or_default().into_iter();
        let ids = of_each.filter_map(|one| String::from_utf8(bytes(array(one)?.into_iter().next()?)?).ok());
        self.done(broker, &ids.collect::<Vec<_>>()).await
    }

    /// Drops what is too old to be believed, by the broker's own clock.
    pub async fn trim(&self, broker: &Connection) -> Result<(), BrokerError> {
        let time: Value = broker.query(&cmd("TIME")).await?;
        let seconds = array(time).and_then(|parts| bytes(parts.into_iter().next()?));
        let seconds = seconds.and_then(|text| std::str::from_utf8(&text).ok()?.parse::<u64>().ok());
        let Some(seconds) = seconds else { return Ok(()) };
        let oldest = seconds.saturating_sub(2 * limits::CALL_AGE_MAX.as_secs()).saturating_mul(1_000);
        let mut trim = cmd("XTRIM");
        trim.arg(&self.name).arg("MINID").arg("~").arg(oldest);
        broker.query::<Value>(&trim).await.map(drop)
    }

    /// Takes servers out of the group that have nothing and were not heard of for so long.
    pub async fn forget_dead(&self, broker: &Connection, idle_ms: u64) -> Result<(), BrokerError> {
        let reply: Value = broker.query(cmd("XINFO").arg("CONSUMERS").arg(&self.name).arg(GROUP)).await?;
        for consumer in array(reply).unwrap_or_default() {
            let Some((name, pending, idle)) = consumer_of(consumer) else { continue };
            if pending == 0 && idle > idle_ms && name != self.consumer {
                self.leave_as(broker, &name).await?;
            }
        }
        Ok(())
    }

    /// Leaves the group. Calls that were taken and not answered stay for the others only if this server stays in it.
    pub async fn leave(&self, broker: &Connection) -> Result<(), BrokerError> {
        let reply: Value = broker.query(cmd("XINFO").arg("CONSUMERS").arg(&self.name).arg(GROUP)).await?;
        let mut own = array(reply).unwrap_or_default().into_iter().filter_map(consumer_of);
        match own.find(|(name, ..)| *name == self.consumer) {
            Some((name, 0, _)) => self.leave_as(broker, &name).await,
            _ => Ok(()),
        }
    }

    async fn leave_as(&self, broker: &Connection, consumer: &str) -> Result<(), BrokerError> {
        let mut delete = cmd("XGROUP");
        delete.arg("DELCONSUMER").arg(&self.name).arg(GROUP).arg(consumer);
        broker.query::<Value>(&delete).await.map(drop)
    }

    /// Writes an answer, and says that its call, where there is one, is done with.
    pub async fn answer(
        &self,
        broker: &Connection,
        to: &AnswerStream,
        answer: &AnswerEntry<'_>,
        call: &str,
    ) -> Result<(), BrokerError> {
        let ids = [call];
        let mut all = pipe();
        all.cmd("XADD").arg(&to.name).arg("MAXLEN").arg("~").arg(limits::ANSWERS_WAITING_MAX).arg("*");
        all.arg("type").arg(answer.kind.as_str()).arg("call").arg(answer.call).arg("sealed").arg(answer.sealed);
        all.cmd("EXPIRE").arg(&to.name).arg(limits::ANSWERS_KEPT.as_secs());
        all.cmd("XACK").arg(&self.name).arg(GROUP).arg(&ids).cmd("XDEL").arg(&self.name).arg(&ids);
        broker.query_all::<Value>(&all).await.map(drop)
    }
}

/// The stream of one worker's answers.
#[derive(Debug, Clone)]
pub struct AnswerStream {
    pub name: String,
}

impl AnswerStream {
    /// Waits for answers behind this one, and forgets those before it.
    pub async fn read(&self, broker: &Connection, last: &str) -> Result<Vec<StreamEntry>, BrokerError> {
        let mut both = pipe();
        both.cmd("XTRIM").arg(&self.name).arg("MINID").arg(last).ignore();
        both.cmd("XREAD").arg("COUNT").arg(limits::READ_COUNT_MAX).arg("BLOCK");
        both.arg(limits::READ_WAIT.as_millis() as u64).arg("STREAMS").arg(&self.name).arg(last);
        let replies: Vec<Value> = broker.query_all(&both).await?;
        Ok(replies.into_iter().next().map(entries_of_only_stream).unwrap_or_default())
    }

    /// Drops what is in it.
    pub async fn clear(&self, broker: &Connection) -> Result<(), BrokerError> {
        broker.query::<Value>(cmd("DEL").arg(&self.name)).await.map(drop)
    }
}

impl Connection {
    /// Writes a call for whichever server takes it.
    pub async fn add_call(&self, stream: &str, call: &CallEntry<'_>) -> Result<(), BrokerError> {
        let mut add = cmd("XADD");
        add.arg(stream).arg("MAXLEN").arg("~").arg(limits::CALLS_WAITING_MAX).arg("*");
        add.arg("type").arg(call.kind.as_str()).arg("ticket").arg(call.ticket).arg("sealed").arg(call.sealed);
        self.query::<Value>(&add).await.map(drop)
    }
}

/// `[name, …, pending, …, idle, …]`: its name, how much it has taken, and for how long it was silent.
fn consumer_of(value: Value) -> Option<(String, i64, u64)> {
    let (mut name, mut pending, mut idle) = (None, None, None);
    let mut values = array(value)?.into_iter();
    while let (Some(field), Some(value)) = (values.next(), values.next()) {
        match (&*bytes(field)?, value) {
            (b"name", value) => name = bytes(value).and_then(|name| String::from_utf8(name).ok()),
            (b"pending", Value::Int(count)) => pending = Some(count),
            (b"idle", Value::Int(span)) => idle = u64::try_from(span).ok(),
            _ => {}
        }
    }
    Some((name?, pending?, idle?))
}
