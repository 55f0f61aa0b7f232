//! Approvals in Slack: one connection a tenant, one person a Slack user, each rung once.

use interlock_core::ids::{ApprovalId, OutboxId, RunId, SlackId, TenantId};
use interlock_core::json::{Hash, Json};
use interlock_core::time::{Millis, Timestamp};
use interlock_core::work::notice::Notice;
use interlock_store::{
    AddSlackLinkRequest, BeginNotice, CardChange, ChangeSlack, Changed, ClimbRung, ForgetNotice, LinkSlackUser,
    NewMessage, NoticePosted, PublishCards, PutSlack, QueuedNotice, RemoveSlack, Secrets, SlackLinkRequestRow,
    SlackLinkRow, SlackRow, SlackUser, Store, Stored, UnlinkSlackUser,
};
use uuid::Uuid;

use crate::harness::TestDatabase;

crate::on_every_store!(connections_links_and_ladders);

fn row(tenant: TenantId, number: u128) -> SlackRow {
    SlackRow {
        tenant,
        id: SlackId(Uuid::from_u128(number)),
        team: "T1".into(),
        enterprise: None,
        channel: "C1".into(),
        escalation_channel: None,
        bot_token: "sealed".into(),
        secrets: Secrets { current: "sealed".into(), previous: None },
        pagerduty_key: None,
        rung_prod: Millis::from_mins(10),
        rung_other: Millis::from_mins(30),
        fed_to: 5,
        fed_at: Timestamp(1),
        created_at: Timestamp(1),
        created_by: Some("ada".into()),
        secret_at: Timestamp(1),
        secret_by: Some("ada".into()),
    }
}

fn queued(kind: Notice, number: u128, run: RunId) -> QueuedNotice {
    let payload = Json::trusted("{}".to_owned());
    QueuedNotice { kind, message: NewMessage { id: OutboxId(Uuid::from_u128(number)), run, payload, place: 0 } }
}

async fn a_tenant_has_one_connection(store: &Store, tenant: TenantId) {
    let first = row(tenant, 1);
    assert_eq!(store.write(PutSlack(first.clone())).await.unwrap(), Changed::Done);
    assert_eq!(store.slack(tenant).await.unwrap(), Some(first.clone()));
    assert_eq!(store.slack_at(first.id).await.unwrap(), Some(first.clone()));
    assert_eq!(store.write(PutSlack(row(tenant, 2))).await.unwrap(), Changed::Gone, "another was made meanwhile");
    let changed = SlackRow { channel: "C2".into(), fed_to: 99, ..first.clone() };
    assert_eq!(store.write(PutSlack(changed)).await.unwrap(), Changed::Done);
    let found = store.slack(tenant).await.unwrap().unwrap();
    assert_eq!(
        (found.channel.as_str(), found.fed_to),
        ("C2", 5),
        "the feed's place is moved by what is published alone"
    );
    let secrets = Secrets { current: "another".into(), previous: None };
    let rotated = SlackRow { secrets, ..found.clone() };
    let change = |row: &SlackRow| ChangeSlack { read: found.clone(), row: row.clone() };
    assert_eq!(store.write(change(&rotated)).await.unwrap(), Changed::Done);
    let moved = SlackRow { channel: "C3".into(), ..found.clone() };
    assert_eq!(store.write(change(&moved)).await.unwrap(), Changed::Gone, "the secret before would come back");
    assert_eq!(store.slack(tenant).await.unwrap(), Some(rotated));
}

async fn people_are_one_slack_user_each(store: &Store, tenant: TenantId) {
    let who = |user: &str| SlackUser { enterprise: String::new(), team: "T1".into(), user: user.into() };
    let link = async |hash: u8, user: &str, person: &str| {
        let token_hash = Hash([hash; 32]);
        let request = SlackLinkRequestRow {
            tenant,
            token_hash,
            who: who(user),
            slack_name: "n".into(),
            created_at: Timestamp(1),
            expires_at: Timestamp(100),
        };
        store.write(AddSlackLinkRequest(request.clone())).await.unwrap();
        assert_eq!(store.slack_link_request(tenant, token_hash).await.unwrap(), Some(request));
        let row = SlackLinkRow {
            tenant,
            who: who(user),
            person: person.into(),
            linked_at: Timestamp(50),
            linked_by: person.into(),
        };
        let write = LinkSlackUser { token_hash, link: row };
        assert_eq!(store.write(write.clone()).await.unwrap(), Changed::Done);
        assert_eq!(store.write(write).await.unwrap(), Changed::Gone, "it works once");
    };
    link(1, "U1", "ada").await;
    link(2, "U2", "ada").await;
    assert_eq!(store.slack_link(tenant, &who("U1")).await.unwrap(), None, "ada is another Slack user now");
    link(3, "U2", "bob").await;
    assert_eq!(store.slack_link_of(tenant, "ada").await.unwrap(), None, "and that one is bob now");
    assert_eq!(store.slack_link(tenant, &who("U2")).await.unwrap().unwrap().person, "bob");
    assert_eq!(store.slack_links(tenant, "", 10).await.unwrap().len(), 1);
    let late = SlackLinkRow {
        tenant,
        who: who("U4"),
        person: "eve".into(),
        linked_at: Timestamp(101),
        linked_by: "eve".into(),
    };
    let request = SlackLinkRequestRow {
        tenant,
        token_hash: Hash([4; 32]),
        who: who("U4"),
        slack_name: "n".into(),
        created_at: Timestamp(1),
        expires_at: Timestamp(100),
    };
    store.write(AddSlackLinkRequest(request)).await.unwrap();
    let write = LinkSlackUser { token_hash: Hash([4; 32]), link: late };
    assert_eq!(store.write(write).await.unwrap(), Changed::Gone, "its time is over");
    let unlink = UnlinkSlackUser { tenant, person: "bob".into() };
    assert_eq!(store.write(unlink.clone()).await.unwrap(), Changed::Done);
    assert_eq!(store.write(unlink).await.unwrap(), Changed::Gone);
}

async fn each_rung_is_climbed_once(store: &Store, tenant: TenantId) {
    let (approval, run) = (ApprovalId(Uuid::from_u128(7)), RunId(Uuid::from_u128(8)));
    let connection = SlackId(Uuid::from_u128(1));
    let publish = |from, to, change, notice| PublishCards {
        tenant,
        connection,
        from,
        to,
        changes: vec![change],
        notices: vec![notice],
        at: Timestamp(to as i64),
    };
    let asked = publish(5, 6, CardChange::Asked { approval, run }, queued(Notice::Card, 100, run));
    assert_eq!(store.write(asked.clone()).await.unwrap(), Changed::Done);
    assert_eq!(store.write(asked).await.unwrap(), Changed::Gone, "another server was faster");
    assert_eq!(store.due_cards(Timestamp(1_000), 10).await.unwrap(), []);
    let overdue = CardChange::Overdue { approval, at: Timestamp(600) };
    store.write(publish(6, 7, overdue, queued(Notice::Card, 101, run))).await.unwrap();
    assert_eq!(store.due_cards(Timestamp(599), 10).await.unwrap(), []);
    let due = store.due_cards(Timestamp(600), 10).await.unwrap();
    assert_eq!((due.len(), due[0].rung, due[0].run), (1, 0, run));
    let climb = ClimbRung {
        tenant,
        approval,
        from: 0,
        to: 1,
        next_at: Some(Timestamp(1_200)),
        notice: Some(queued(Notice::Reminder, 102, run)),
        at: Timestamp(600),
    };
    assert_eq!(store.write(climb.clone()).await.unwrap(), Changed::Done);
    let again = ClimbRung { notice: Some(queued(Notice::Reminder, 103, run)), ..climb };
    assert_eq!(store.write(again).await.unwrap(), Changed::Gone);
    let destinations = store.outbox_destinations(None, 10).await.unwrap();
    let waiting: Vec<_> = destinations.iter().map(|found| found.destination.as_str()).collect();
    assert_eq!(waiting, ["notice:card", "notice:reminder"]);
    let reminders = store.due_messages(&[(tenant, "notice:reminder".into())], Timestamp(2_000), 10).await.unwrap();
    assert_eq!(reminders.len(), 1);
    store.write(publish(7, 8, CardChange::Decided { approval }, queued(Notice::Card, 104, run))).await.unwrap();
    assert_eq!(store.due_cards(Timestamp(9_000), 10).await.unwrap(), []);
    assert_eq!(store.approval_card(tenant, approval).await.unwrap().unwrap().rung, 1);
}

async fn a_post_is_begun_once(store: &Store, tenant: TenantId) {
    let (approval, kind) = (ApprovalId(Uuid::from_u128(7)), Notice::Card);
    let begin = BeginNotice { tenant, approval, kind, at: Timestamp(3) };
    assert_eq!(store.write(begin).await.unwrap(), Stored::Stored);
    assert_eq!(store.write(begin).await.unwrap(), Stored::Duplicate);
    assert_eq!(store.write(ForgetNotice { tenant, approval, kind }).await.unwrap(), Changed::Done);
    assert_eq!(store.write(begin).await.unwrap(), Stored::Stored);
    let posted = NoticePosted { tenant, approval, kind, channel: "C1".into(), ts: "1.1".into() };
    assert_eq!(store.write(posted.clone()).await.unwrap(), Changed::Done);
    assert_eq!(store.write(posted).await.unwrap(), Changed::Gone);
    assert_eq!(store.write(ForgetNotice { tenant, approval, kind }).await.unwrap(), Changed::Gone, "it was posted");
    let notices = store.notices(tenant, approval).await.unwrap();
    assert_eq!((notices.len(), notices[0].ts.as_deref()), (1, Some("1.1")));
}

async fn connections_links_and_ladders(database: &TestDatabase) {
    let world = database.world().await;
    let (store, tenant) = (&world.store, world.tenant);
    a_tenant_has_one_connection(store, tenant).await;
    people_are_one_slack_user_each(store, tenant).await;
    each_rung_is_climbed_once(store, tenant).await;
    a_post_is_begun_once(store, tenant).await;
    assert_eq!(store.write(RemoveSlack { tenant, at: Timestamp(9) }).await.unwrap(), Changed::Done);
    assert_eq!(store.slack(tenant).await.unwrap(), None);
    assert_eq!(store.outbox_destinations(None, 10).await.unwrap(), [], "what was on its way goes nowhere");
    world.store.close().await;
}
