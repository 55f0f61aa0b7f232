//! `POST /policy/tests`: runs the tests of a policy, and says what became of each. Nothing is kept.

use axum::Json;
use axum::extract::State;
use interlock_engine::policy::bundles::{RuleTest, TestOutcome};
use interlock_protocol::policy::{PolicyTest, PolicyTests, TestPolicy, path};

use crate::api_error::ApiError;
use crate::identity::Caller;
use crate::request::Body;
use crate::state::AppState;

/// Run the tests of a policy
///
/// Those of `files`, which are no version yet; else those of a `version`, or of the policy that comes with the server.
#[utoipa::path(
    post,
    path = path::TESTS,
    tag = "policy",
    request_body = TestPolicy,
    responses((status = 200, description = "What became of each.", body = PolicyTests)),
)]
pub async fn run(
    State(state): State<AppState>,
    caller: Caller,
    Body(body): Body<TestPolicy>,
) -> Result<Json<PolicyTests>, ApiError> {
    let files = match (body.files, body.version) {
        (Some(_), Some(_)) => return Err(ApiError::malformed("give either `files` or `version`")),
        (Some(files), None) => files,
        (None, version) => state.policies().files(caller.tenant, version).await?,
    };
    let tests = state.policies().test(caller.tenant, files).await?;
    let passed = tests.iter().filter(|test| test.has_passed()).count();
    Ok(Json(PolicyTests { passed, failed: tests.len() - passed, tests: tests.into_iter().map(shown).collect() }))
}

fn shown(test: RuleTest) -> PolicyTest {
    let RuleTest { file, line, name, outcome } = test;
    let (outcome, message) = match outcome {
        TestOutcome::Passed => ("passed", None),
        TestOutcome::Failed => ("failed", None),
        TestOutcome::Broken(what) => ("error", Some(what)),
    };
    PolicyTest { name, file, line, outcome: outcome.to_owned(), message }
}
