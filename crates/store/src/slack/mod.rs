//! Approvals in Slack: a tenant's connection, which person a Slack user is, and what was posted about an approval.

mod reads;
mod rows;
pub(crate) mod sql;
mod writes;

pub use rows::{ApprovalCardRow, NoticeRow, SlackLinkRequestRow, SlackLinkRow, SlackRow, SlackUser};
pub use writes::{
    AddSlackLinkRequest, BeginNotice, CardChange, ChangeSlack, ClimbRung, ForgetNotice, LinkSlackUser, NoticePosted,
    PublishCards, PutSlack, QueuedNotice, RemoveSlack, UnlinkSlackUser,
};
