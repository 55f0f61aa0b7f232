//! Who has pressed: the person whom a Slack user is linked to. A Slack user who is not linked gets an address by which
//! they can link themselves, signed in; guests and users of other Slack workspaces get none.

use axum::http::HeaderMap;
use interlock_core::time::Millis;
use interlock_engine::slack::api::SlackClient;
use interlock_engine::slack::card::escaped;
use interlock_engine::slack::take::Presser;
use interlock_store::{AddSlackLinkRequest, SlackLinkRequestRow, SlackRow, SlackUser};
use serde_json::json;

use crate::api_error::ApiError;
use crate::identity::key::random_text;
use crate::identity::{Caller, note};
use crate::links::slack_link;
use crate::state::AppState;

/// How long the address works.
const LINK_WITHIN: Millis = Millis::from_mins(10);
const TOKEN_CHARS: usize = 43;
const NAME_CHARS_MAX: usize = 80;

/// What the person is told who may not go on.
pub struct PressRefusal(pub String);

/// The person behind a press, or what to tell the Slack user who pressed.
pub async fn identify(
    state: &AppState,
    client: &SlackClient,
    slack: &SlackRow,
    by: &Presser,
) -> Result<Result<Caller, PressRefusal>, ApiError> {
    let refuse = |text: &str| Ok(Err(PressRefusal(text.to_owned())));
    let other_team = by.user_team.as_ref().is_some_and(|team| *team != slack.team);
    if by.team != slack.team || other_team || by.enterprise != slack.enterprise {
        return refuse(
            "You belong to another Slack workspace than the one that is asked here, so you cannot decide in Slack.",
        );
    }
    let enterprise = by.enterprise.clone().unwrap_or_default();
    let who = SlackUser { enterprise, team: by.team.clone(), user: by.user.clone() };
    if let Some(link) = state.for_tenant(slack.tenant).slack_link(&who).await? {
        return match state.identity().linked(slack, link).await? {
            Some(caller) => Ok(Ok(caller)),
            None => refuse("The Interlock account that you are linked to is disabled or gone."),
        };
    }
    let Ok(profile) = client.profile(&by.user).await else {
        return refuse("Slack does not say whether you are a member of this workspace. Press again in a moment.");
    };
    if profile.is_guest || profile.team.as_ref().is_some_and(|team| *team != slack.team) {
        return refuse("Guests of this Slack workspace cannot decide in Slack. Sign in to Interlock itself.");
    }
    Ok(Err(PressRefusal(request_link(state, slack, who, &by.name).await?)))
}

/// An address by which a person who is signed in confirms that this Slack user is them.
async fn request_link(state: &AppState, slack: &SlackRow, who: SlackUser, name: &str) -> Result<String, ApiError> {
    let (now, token) = (state.now(), random_text(TOKEN_CHARS));
    let row = SlackLinkRequestRow {
        tenant: slack.tenant,
        token_hash: state.identity().slack_token_hash(&token),
        who,
        slack_name: name.chars().take(NAME_CHARS_MAX).collect(),
        created_at: now,
        expires_at: now + LINK_WITHIN,
    };
    let details = json!({ "team": row.who.team, "user": row.who.user });
    let what = note::done("slack.link_requested", None, slack.id, &details);
    state.identity().write_noted(slack.tenant, AddSlackLinkRequest(row), what).await?;
    let address = slack_link(&state.base_url(&HeaderMap::new()), &token);
    Ok(format!(
        "Interlock does not know who you are. <{}|Link your account>, signed in to Interlock, and press again. The \
         address is for you alone, works once, and for ten minutes: do not hand it on.",
        escaped(&address)
    ))
}
