//! People at the command line: signing in, and deciding.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::harness::Up;

const PASSWORD: &str = "correct horse battery";

/// A person with a password, who is not signed in yet.
fn person(up: &Up, name: &str, roles: &str) {
    let made = up.run(&["user", "create", name, "--role", roles, "--no-invite"]);
    assert_eq!(made.code, 0, "{made:?}");
    let set = up.run_fed(&["user", "set-password", name], PASSWORD);
    assert_eq!(set.code, 0, "{set:?}");
}

/// Signs in under a context of the person's own name.
fn sign_in(up: &Up, name: &str) {
    let server = up.server();
    let signed_in =
        up.run_fed(&["login", "--server", &server, "--context", name, "--user", name], &format!("{PASSWORD}\n"));
    assert_eq!(signed_in.code, 0, "{signed_in:?}");
    assert!(signed_in.err.contains(&format!("as {name} until")) && !signed_in.err.contains(PASSWORD), "{signed_in:?}");
}

fn gated(up: &Up, subject: &str, quorum: u32) {
    let plan = format!(
        r#"{{"workflow":"w","version":1,"steps":[{{"key":"gate","kind":"approval","quorum":{quorum},"message":"restart \u001b[2J db?"}}]}}"#
    );
    let plan = up.file("gate.json", &plan);
    let started = up.run(&["run", "start", "--plan", &plan, "--subject", subject]);
    assert_eq!(started.code, 0, "{started:?}");
}

#[test]
fn why_offers_only_what_the_caller_may_do() {
    let up = Up::start(&["--no-demo"]);
    person(&up, "ada", "operator,approver");
    person(&up, "vera", "viewer");
    gated(&up, "INC-1", 1);
    let by_key = up.run(&["run", "why", "INC-1"]).out;
    assert!(by_key.contains("An approver can approve or reject it; a key cannot."), "{by_key}");
    assert!(!by_key.contains("interlock approval approve") && by_key.contains("interlock run cancel"), "{by_key}");
    let tenant = up.run(&["tenant", "list", "-o", "json"]).json()[0]["tenant"].as_str().unwrap().to_owned();
    let changed = up.run(&["tenant", "update", &tenant, "--self-approval", "false"]);
    assert_eq!(changed.code, 0, "{changed:?}");

    sign_in(&up, "ada");
    gated(&up, "INC-2", 1);
    let own = up.run(&["run", "why", "INC-2"]).out;
    assert!(own.contains("you cannot, because you started or directed it"), "{own}");
    assert_eq!(up.run(&["run", "why", "INC-2", "-o", "json"]).json()["next"], serde_json::json!(["cancel"]));
    let shown = up.run(&["approval", "show", "INC-2"]).out;
    assert!(shown.contains("ada (started or directed it, or wrote its workflow)"), "{shown}");

    sign_in(&up, "vera");
    let viewer = up.run(&["run", "why", "INC-2"]).out;
    assert!(viewer.contains("An operator can cancel it.") && !viewer.contains("What you can do"), "{viewer}");

    let key = up.key();
    let admin = [("INTERLOCK_API_KEY", key.trim())];
    let changed = up.run_with(&admin, &["tenant", "update", &tenant, "--self-approval", "true"]);
    assert_eq!(changed.code, 0, "{changed:?}");
    assert_eq!(up.run(&["context", "use", "ada"]).code, 0);
    for command in [["approval", "show", "INC-2"], ["run", "why", "INC-2"]] {
        let told = up.run(&command).out;
        assert!(told.contains("the tenant lets people approve their own runs"), "{told}");
    }
    assert!(up.run(&["run", "why", "INC-2"]).out.contains("interlock approval approve"));
    // Others are told so as well.
    assert_eq!(up.run(&["context", "use", "vera"]).code, 0);
    for command in [["approval", "show", "INC-2"].as_slice(), &["status"]] {
        let told = up.run(command).out;
        assert!(told.contains("the tenant lets people approve their own runs"), "{told}");
    }
}

#[test]
fn people_sign_in_with_a_password_and_decide() {
    let up = Up::start(&["--no-demo"]);
    person(&up, "ada", "operator,approver");
    person(&up, "bob", "approver");
    gated(&up, "INC-1", 1);

    let by_key = up.run(&["approval", "approve", "INC-1", "--yes"]);
    assert_eq!(by_key.code, 77, "{by_key:?}");
    assert!(by_key.err.contains("only people decide") && by_key.err.contains("interlock login"), "{by_key:?}");
    let wrong = up.run_fed(&["login", "--server", &up.server(), "--user", "ada"], "wrong");
    assert_eq!(wrong.code, 77, "{wrong:?}");
    assert!(wrong.err.contains("the name or the password is wrong"), "{wrong:?}");

    // A key beside a person is a mistake; one in the environment is for others, and stands.
    let key = up.file("some.key", "ilk_x");
    let both = up.run_fed(&["login", "--server", &up.server(), "--user", "ada", "--api-key-file", &key], PASSWORD);
    assert_eq!(both.code, 2, "{both:?}");
    assert!(both.err.contains("--user") && both.err.contains("--api-key-file"), "{both:?}");
    sign_in(&up, "ada");
    let me = up.run(&["whoami", "-o", "json"]).json();
    assert_eq!((me["person"].as_str(), me["csrf"].as_str()), (Some("ada"), None));
    assert!(up.run(&["whoami"]).out.contains("ada, a person"));
    let listed = up.run(&["approval", "list"]);
    assert!(listed.out.contains("requested") && listed.out.contains("0/1"), "{listed:?}");
    assert!(listed.out.contains("restart \\u{1b}[2J db?"), "what is asked cannot command the terminal: {listed:?}");
    let shown = up.run(&["approval", "show", "INC-1"]);
    assert!(shown.out.contains("one person's yes") && shown.out.contains("digest"), "{shown:?}");
    assert!(shown.out.contains("\ndue        in 30 min\n") && shown.out.contains("\ntier       "), "{shown:?}");

    let stale = up.run(&["approval", "approve", "INC-1", "--yes", "--digest", "00"]);
    assert_eq!(stale.code, 65, "{stale:?}");
    assert!(stale.err.contains("APPROVAL_CHANGED") && stale.err.contains("look again"), "{stale:?}");
    let unasked = up.run(&["approval", "approve", "INC-1"]);
    assert_eq!(unasked.code, 2, "{unasked:?}");
    let approved = up.run(&["approval", "approve", "INC-1", "--yes", "--reason", "looked at it"]);
    assert_eq!(approved.code, 0, "{approved:?}");
    assert!(approved.out.contains("is approved") && approved.out.contains("succeeded"), "{approved:?}");
    // Who said yes, and why, stands in what happened.
    for command in [["events", "INC-1"].as_slice(), &["run", "watch", "INC-1"]] {
        let told = up.run(command).out;
        assert!(told.contains("+ ada approved (looked at it)"), "{told}");
    }
    let events = up.run(&["events", "INC-1", "-o", "json"]).json();
    let voted = events.as_array().unwrap().iter().find(|event| event["type"] == "approval.voted").unwrap();
    assert_eq!((&voted["context"]["reason"], &voted["payload"]["person"]), (&"looked at it".into(), &"ada".into()));
    let again = up.run(&["approval", "reject", "INC-1", "--yes", "--reason", "no"]);
    assert_eq!(again.code, 65, "{again:?}");
    assert!(again.err.contains("approved already, by ada"), "{again:?}");

    // One's own run, and the second of two keys.
    gated(&up, "INC-2", 2);
    let own = up.run(&["approval", "approve", "INC-2", "--yes"]);
    assert_eq!(own.code, 65, "{own:?}");
    assert!(own.err.contains("ada started or directed this run and may not decide on it"), "{own:?}");
    sign_in(&up, "bob");
    let first = up.run(&["approval", "approve", "INC-2", "--yes"]);
    assert!(first.out.contains("1 of 2; another person has to say yes"), "{first:?}");
    let twice = up.run(&["approval", "approve", "INC-2", "--yes"]);
    assert_eq!(twice.code, 0, "it has been said, and is not counted twice: {twice:?}");
    assert!(twice.out.contains("1 of 2; another person has to say yes"), "{twice:?}");
    let absent = up.run(&["approval", "show", "nonsense"]);
    assert_eq!(absent.code, 66, "{absent:?}");

    // Signing out ends the token on the server.
    let contexts = std::fs::read_to_string(up.path("config/contexts.json")).unwrap();
    let token = contexts.split('"').filter(|part| part.starts_with("ilp_")).map(str::to_owned);
    let tokens: Vec<String> = token.collect();
    assert_eq!(tokens.len(), 2, "{contexts}");
    for name in ["ada", "bob"] {
        let out = up.run(&["logout", "--context", name]);
        assert!(out.code == 0 && out.err.contains("signed out on the server"), "{out:?}");
    }
    for token in &tokens {
        let over = up.run_with(&[("INTERLOCK_API_KEY", token)], &["whoami"]);
        assert_eq!(over.code, 77, "{over:?}");
    }
}

#[test]
fn people_let_others_decide_for_them() {
    let up = Up::start(&["--no-demo"]);
    person(&up, "ada", "approver");
    person(&up, "vic", "viewer");
    gated(&up, "INC-1", 1);
    let by_key = up.run(&["approval", "delegate", "vic", "--for", "14d", "--reason", "leave"]);
    assert_eq!(by_key.code, 65, "{by_key:?}");
    assert!(by_key.err.contains("name the `delegator`"), "{by_key:?}");
    sign_in(&up, "vic");
    let early = up.run(&["approval", "approve", "INC-1", "--yes"]);
    assert_eq!(early.code, 77, "{early:?}");
    sign_in(&up, "ada");
    let forever = up.run(&["approval", "delegate", "vic", "--reason", "leave"]);
    assert_eq!(forever.code, 2, "{forever:?}");
    let lent = up.run(&["approval", "delegate", "vic", "--for", "14d", "--reason", "leave"]);
    assert!(lent.code == 0 && lent.out.contains("vic decides for ada from"), "{lent:?}");
    let listed = up.run(&["approval", "delegations"]);
    assert!(listed.out.contains("in force") && listed.out.contains("leave"), "{listed:?}");
    let id = up.run(&["approval", "delegations", "-o", "json"]).json()[0]["delegation"].as_str().unwrap().to_owned();

    sign_in(&up, "vic");
    let approved = up.run(&["approval", "approve", "INC-1", "--yes", "--on-behalf-of", "ada"]);
    assert!(approved.out.contains("vic on behalf of ada approved step `gate` of w version 1"), "{approved:?}");
    let shown = up.run(&["approval", "show", "INC-1"]);
    assert!(shown.out.contains("yes from vic for ada"), "{shown:?}");
    let not_hers = up.run(&["approval", "undelegate", &id]);
    assert_eq!(not_hers.code, 77, "{not_hers:?}");
    sign_in(&up, "ada");
    let over = up.run(&["approval", "undelegate", &id]);
    assert!(over.code == 0 && over.out.contains("vic does not decide for ada any more"), "{over:?}");
    assert!(up.run(&["approval", "delegations"]).out.contains("There are no delegations"));
    assert!(up.run(&["approval", "delegations", "--all"]).out.contains("revoked"));
}

/// What a browser does between the address that is printed and the port that waits.
async fn browse(server: &str, address: &str) -> (u16, String) {
    let browser = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let location = |answer: &reqwest::Response| answer.headers()["location"].to_str().unwrap().to_owned();
    let to_login = browser.get(address).send().await.unwrap();
    let login = location(&to_login);
    assert!(login.starts_with("/login?next="), "{login}");
    let next = reqwest::Url::parse(&format!("{server}{login}")).unwrap();
    let next = next.query_pairs().find(|(name, _)| name == "next").unwrap().1.into_owned();
    let encoded = |fields: &[(&str, &str)]| {
        let mut url = reqwest::Url::parse("http://x").unwrap();
        url.query_pairs_mut().extend_pairs(fields);
        url.query().unwrap().to_owned()
    };
    let form = |path: String, body: String| {
        browser.post(format!("{server}{path}")).header("content-type", "application/x-www-form-urlencoded").body(body)
    };
    let fields = encoded(&[("name", "ada"), ("password", PASSWORD), ("next", &next), ("tenant", "")]);
    let signed_in = form("/login".into(), fields).send().await.unwrap();
    let cookie = signed_in.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let page = browser.get(format!("{server}{}", location(&signed_in))).header("cookie", &cookie).send().await.unwrap();
    assert!(
        page.headers()["content-security-policy"].to_str().unwrap().contains("form-action 'self' http://127.0.0.1:")
    );
    let page = page.text().await.unwrap();
    let hidden: BTreeMap<&str, &str> = page
        .split("<input type=\"hidden\" name=\"")
        .skip(1)
        .map(|rest| {
            let (name, rest) = rest.split_once("\" value=\"").unwrap();
            (name, rest.split('"').next().unwrap())
        })
        .collect();
    let forged = encoded(&[("csrf", "forged"), ("challenge", hidden["challenge"]), ("state", ""), ("port", "")]);
    let forged = form("/auth/cli".into(), forged).header("cookie", &cookie).send().await.unwrap();
    assert_eq!(forged.status(), 403);
    let fields: Vec<(&str, &str)> = hidden.into_iter().collect();
    let allowed = form("/auth/cli".into(), encoded(&fields)).header("cookie", &cookie).send().await.unwrap();
    let back = location(&allowed);
    assert!(back.starts_with("http://127.0.0.1:"), "{back}");
    let lost = back.replace("state=", "state=x");
    assert_eq!(browser.get(&lost).send().await.unwrap().status(), 400, "an answer to another login");
    let answer = browser.get(&back).send().await.unwrap();
    (answer.status().as_u16(), answer.text().await.unwrap())
}

#[test]
fn people_sign_in_on_the_servers_page() {
    let up = Up::start(&["--no-demo"]);
    person(&up, "ada", "approver");
    let server = up.server();
    let mut command = up.command();
    command.args(["login", "--server", &server, "--context", "page", "--browser=print"]);
    let mut login = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(login.stderr.take().unwrap());
    let mut address = String::new();
    while !address.trim().starts_with("http") {
        address.clear();
        assert!(said.read_line(&mut address).unwrap() > 0, "it ended");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (status, page) = runtime.block_on(browse(&server, address.trim()));
    assert_eq!(status, 200, "{page}");
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(login.wait().unwrap().success(), "{rest}");
    assert!(rest.contains("as ada until"), "{rest}");
    assert!(up.run(&["whoami"]).out.contains("ada, a person"));

    let forged = up.run_fed(&["login", "--server", &server, "--browser=code"], "a.b.c\n");
    assert_eq!(forged.code, 77, "{forged:?}");
    assert!(forged.err.contains("LOGIN_CODE_OVER"), "{forged:?}");
}
