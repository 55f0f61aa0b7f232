//! Pages of approvals. The store filters and orders; who may decide is asked of each, so a page reads on until it is full or
//! has looked at [`EXAMINED_MAX`], and then says from where to go on.
//!
//! "Mine first" is two walks over the same list: those that the caller may decide, then the others.

use futures::future::try_join_all;
use interlock_core::ids::RunId;
use interlock_core::plan::tier::Tier;
use interlock_core::state::ApprovalState;
use interlock_core::time::Timestamp;
use interlock_protocol::approvals::{ApprovalList, ApprovalOrder, ApprovalView};
use interlock_store::{ApprovalFilter, ApprovalRow, DuePlace};

use super::view;
use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::state::AppState;

/// Runs that are loaded at once for what they say of their approvals.
const RUNS_LOADED_AT_ONCE: usize = 16;
/// Approvals that one page looks at, at most.
const EXAMINED_MAX: usize = 1_000;
/// Approvals that are read at once, at least and at most.
const READ_AT_ONCE: (usize, usize) = (RUNS_LOADED_AT_ONCE, 128);

/// Which part of the inbox a page is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InboxSection {
    All,
    Mine,
    Others,
}

/// From where a page goes on.
#[derive(Debug, Clone, Copy)]
pub struct Cursor {
    walk: InboxSection,
    place: DuePlace,
}

impl Cursor {
    /// What [`Cursor::text`] has written.
    pub fn parse(text: &str, order: ApprovalOrder) -> Result<Self, ApiError> {
        let read = || {
            if order == ApprovalOrder::Oldest {
                let place = DuePlace { due_at: Timestamp(0), approval: text.parse().ok()? };
                return Some(Self { walk: InboxSection::All, place });
            }
            let mut parts = text.splitn(3, '.');
            let walk = match parts.next()? {
                "mine" => InboxSection::Mine,
                "others" => InboxSection::Others,
                _ => return None,
            };
            let due_at = Timestamp(parts.next()?.parse().ok()?);
            Some(Self { walk, place: DuePlace { due_at, approval: parts.next()?.parse().ok()? } })
        };
        read().ok_or_else(|| {
            ApiError::malformed("`after` is no `next_after` of a page in this order: leave it out to begin anew")
        })
    }

    fn text(self) -> String {
        let DuePlace { due_at: Timestamp(due), approval } = self.place;
        match self.walk {
            InboxSection::All => approval.to_string(),
            InboxSection::Mine => format!("mine.{due}.{approval}"),
            InboxSection::Others => format!("others.{due}.{approval}"),
        }
    }
}

/// What only a look at each approval tells.
pub struct InboxFilters {
    /// Of a run's approvals, those in this state.
    pub state: Option<ApprovalState>,
    pub mine: Option<bool>,
    pub group: Option<String>,
    pub tier: Option<Tier>,
    /// Due then or later.
    pub due_from: Option<Timestamp>,
}

pub struct Inbox<'a> {
    pub state: &'a AppState,
    pub caller: &'a Caller,
    pub order: ApprovalOrder,
    pub run: Option<RunId>,
    pub filter: ApprovalFilter,
    pub wanted: InboxFilters,
}

impl Inbox<'_> {
    pub async fn page(&self, after: Option<Cursor>, limit: usize) -> Result<ApprovalList, ApiError> {
        let walks: &[InboxSection] = match (self.order, self.wanted.mine) {
            (ApprovalOrder::Oldest, _) => &[InboxSection::All],
            (ApprovalOrder::Due, Some(true)) => &[InboxSection::Mine],
            (ApprovalOrder::Due, Some(false)) => &[InboxSection::Others],
            (ApprovalOrder::Due, None) if self.caller.as_voter().is_err() => &[InboxSection::Others],
            (ApprovalOrder::Due, None) => &[InboxSection::Mine, InboxSection::Others],
        };
        let at_once = (limit + 1).clamp(READ_AT_ONCE.0, READ_AT_ONCE.1);
        let begun = after.map_or(walks[0], |cursor| cursor.walk);
        let mut approvals: Vec<(Cursor, ApprovalView)> = Vec::new();
        let mut examined = 0;
        for walk in walks.iter().copied().skip_while(|walk| *walk != begun) {
            let mut place = after.filter(|cursor| cursor.walk == walk).map(|cursor| cursor.place);
            loop {
                let rows = self.rows(place, at_once).await?;
                let Some(last) = rows.last() else { break };
                let (count, end) = (rows.len(), place_of(last));
                for (row_place, approval) in self.looked_at(rows).await? {
                    if self.belongs(walk, &approval) {
                        approvals.push((Cursor { walk, place: row_place }, approval));
                    }
                }
                if approvals.len() > limit {
                    approvals.truncate(limit);
                    let next_after = approvals.last().map(|(cursor, _)| cursor.text());
                    return Ok(list(approvals, next_after));
                }
                examined += count;
                if count < at_once || self.run.is_some() {
                    break;
                }
                if examined >= EXAMINED_MAX {
                    return Ok(list(approvals, Some(Cursor { walk, place: end }.text())));
                }
                place = Some(end);
            }
        }
        Ok(list(approvals, None))
    }

    async fn rows(&self, after: Option<DuePlace>, at_once: usize) -> Result<Vec<ApprovalRow>, ApiError> {
        let store = self.state.for_tenant(self.caller.tenant);
        let Some(run) = self.run else {
            return Ok(match self.order {
                ApprovalOrder::Oldest => {
                    store.approvals(&self.filter, after.map(|after| after.approval), at_once).await?
                }
                ApprovalOrder::Due => store.approvals_due(&self.filter, after, at_once).await?,
            });
        };
        let mut rows = store.approvals_of(run).await?;
        if self.order == ApprovalOrder::Due {
            rows.sort_by_key(|row| (row.due_at(), row.id));
        }
        rows.retain(|row| self.is_listed(row) && after.is_none_or(|after| self.comes_after(row, after)));
        Ok(rows)
    }

    /// What the store's filter says, for the approvals of one run.
    fn is_listed(&self, row: &ApprovalRow) -> bool {
        let ApprovalFilter { workflow, subject, since, due_before, quorum, .. } = &self.filter;
        self.wanted.state.is_none_or(|state| row.state == state)
            && workflow.as_ref().is_none_or(|workflow| *workflow == row.workflow)
            && subject.as_ref().is_none_or(|subject| row.subject.as_ref() == Some(subject))
            && since.is_none_or(|since| row.requested_at >= since)
            && due_before.is_none_or(|before| row.due_at() < before)
            && row.quorum >= *quorum
    }

    fn comes_after(&self, row: &ApprovalRow, place: DuePlace) -> bool {
        match self.order {
            ApprovalOrder::Oldest => row.id > place.approval,
            ApprovalOrder::Due => (row.due_at(), row.id) > (place.due_at, place.approval),
        }
    }

    async fn looked_at(&self, mut rows: Vec<ApprovalRow>) -> Result<Vec<(DuePlace, ApprovalView)>, ApiError> {
        // An approval that was asked before the store kept its other lists has them in its run alone, while it is open.
        let may_ask = |row: &ApprovalRow, group: &String| {
            let mut lists = row.and_from.iter().map(|others| &others.approvers).chain([&row.approvers]);
            row.state == ApprovalState::Requested || lists.any(|groups| groups.contains(group))
        };
        rows.retain(|row| {
            self.wanted.group.as_ref().is_none_or(|group| may_ask(row, group))
                && self.wanted.due_from.is_none_or(|from| row.due_at() >= from)
        });
        let mut looked_at = Vec::with_capacity(rows.len());
        while !rows.is_empty() {
            let next = rows.drain(..rows.len().min(RUNS_LOADED_AT_ONCE));
            let views = next.map(async |row| {
                let place = place_of(&row);
                view::looked_up_by(self.state, self.caller, row).await.map(|view| (place, view))
            });
            looked_at.extend(try_join_all(views).await?);
        }
        Ok(looked_at)
    }

    fn belongs(&self, walk: InboxSection, approval: &ApprovalView) -> bool {
        let mine = approval.may_decide.unwrap_or_default();
        let in_walk = match walk {
            InboxSection::All => true,
            InboxSection::Mine => mine,
            InboxSection::Others => !mine,
        };
        in_walk
            && self.wanted.group.as_ref().is_none_or(|group| asks(approval, group))
            && self.wanted.mine.is_none_or(|wanted| wanted == mine)
            && self.wanted.tier.is_none_or(|tier| approval.tier == Some(tier))
    }
}

/// Whether people of the group are asked, by whichever of the approval's lists.
fn asks(approval: &ApprovalView, group: &str) -> bool {
    let mut lists = approval.and_from.iter().map(|others| &others.approvers).chain([&approval.approvers]);
    lists.any(|groups| groups.iter().any(|asked| asked == group))
}

fn list(approvals: Vec<(Cursor, ApprovalView)>, next_after: Option<String>) -> ApprovalList {
    ApprovalList { approvals: approvals.into_iter().map(|(_, approval)| approval).collect(), next_after }
}

fn place_of(row: &ApprovalRow) -> DuePlace {
    DuePlace { due_at: row.due_at(), approval: row.id }
}

#[cfg(test)]
mod tests {
    use interlock_core::ids::ApprovalId;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_group_is_asked_by_any_of_the_lists() {
        let approval: ApprovalView = serde_json::from_value(json!({
            "approval": ApprovalId::from_bytes([1; 16]), "run_id": RunId::from_bytes([2; 16]), "workflow": "demo",
            "position": 0, "state": "requested", "purpose": "gate", "digest": "d", "quorum": 1, "approvers": ["sre"],
            "and_from": [{ "quorum": 1, "approvers": ["dba", "db-leads"] }], "excluded": [], "votes": [],
            "requested_at": 0, "expires_at": 1,
        }))
        .unwrap();
        let asked = ["sre", "dba", "db-leads", "sales"].map(|group| asks(&approval, group));
        assert_eq!(asked, [true, true, true, false]);
    }
}
