//! Every route with every role: exactly those get in whom the matrix lets in.

use axum::body::Body;
use axum::http::{Request, header};
use interlock_core::tenant::identity::{Permission, Role};
use interlock_server::identity::NewKey;
use interlock_server::matrix::MATRIX;

use crate::harness::Api;

/// The route with something in the place of its names.
fn filled(path: &str) -> String {
    let mut text = path.to_owned();
    while let (Some(start), Some(end)) = (text.find('{'), text.find('}')) {
        text.replace_range(start..=end, "nothing");
    }
    text
}

#[tokio::test(start_paused = true)]
async fn every_route_with_every_role() {
    let api = Api::new().await;
    let mut keys = Vec::new();
    for role in Role::ALL {
        let new = NewKey::new(api.tenant, role.as_str(), [*role].into_iter().collect());
        keys.push((*role, api.new_key(new).await));
    }
    for line in MATRIX {
        let ask = async |key: Option<&str>| {
            let mut request = Request::builder()
                .method(line.method)
                .uri(filled(line.path))
                .header(header::HOST, "localhost")
                .header(header::CONTENT_TYPE, "application/json");
            if let Some(key) = key {
                request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
            }
            api.ask(request.body(Body::from("{}")).unwrap()).await
        };
        let route = format!("{} {}", line.method, line.path);
        let stranger = ask(None).await;
        assert_ne!(stranger.body["code"], "ROUTE_NOT_FOUND", "{route} is in the matrix and not in the router");
        let turned_away = stranger.body["code"] == "UNAUTHORIZED";
        assert_eq!(turned_away, line.needs != Permission::Public, "{route}: {}", stranger.body);
        for (role, key) in &keys {
            let answer = ask(Some(key)).await;
            let let_in = answer.body["code"] != "PERMISSION_DENIED";
            // No caller here has charge of the installation.
            let may = role.grants(line.needs) && line.needs != Permission::Install;
            assert_eq!(let_in, may, "{route} as {role}: {} {}", answer.status, answer.body);
            assert_ne!(answer.body["code"], "UNAUTHORIZED", "{route} as {role}");
        }
    }
    api.end().await;
}
