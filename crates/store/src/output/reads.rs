use interlock_core::ids::{RunId, TenantId};

use super::{OutputHead, OutputPlace, OutputRow, sql};
use crate::error::{CorruptRow, ReadError};
use crate::store::Store;
use crate::value::{Row, args};

impl Store {
    /// Which attempts of a run have written something, and how much.
    pub async fn output_heads(&self, tenant: TenantId, run: RunId, limit: usize) -> Result<Vec<OutputHead>, ReadError> {
        self.every(&sql::OUTPUT_HEADS, args![tenant, run, limit], head).await
    }

    /// What a step has written behind a place, in all its attempts.
    pub async fn output_after(
        &self,
        tenant: TenantId,
        run: RunId,
        (position, after): (u32, OutputPlace),
        limit: usize,
    ) -> Result<Vec<OutputRow>, ReadError> {
        let values = args![tenant, run, position, after.attempt, after.seq, limit];
        self.every(&sql::OUTPUT_AFTER, values, chunk).await
    }

    /// The same within one attempt.
    pub async fn output_of_attempt(
        &self,
        tenant: TenantId,
        run: RunId,
        (position, after): (u32, OutputPlace),
        limit: usize,
    ) -> Result<Vec<OutputRow>, ReadError> {
        let values = args![tenant, run, position, after.attempt, after.seq, limit];
        self.every(&sql::OUTPUT_OF_ATTEMPT, values, chunk).await
    }
}

fn head(mut row: Row) -> Result<OutputHead, CorruptRow> {
    Ok(OutputHead {
        position: row.num("position")?,
        attempt: row.num("attempt")?,
        next_seq: row.num("next_seq")?,
        bytes: row.num("bytes")?,
        cut: row.flag("cut")?,
        began_at: row.time("began_at")?,
        last_at: row.time("last_at")?,
    })
}

fn chunk(mut row: Row) -> Result<OutputRow, CorruptRow> {
    let (attempt, seq, stream) = (row.num("attempt")?, row.num("stream_seq")?, row.name("chunk_type")?);
    let text = String::from_utf8(row.blob("data")?).map_err(|_| row.corrupt("data", "is no UTF-8"))?;
    Ok(OutputRow { attempt, seq, stream, text, at: row.time("at")? })
}
