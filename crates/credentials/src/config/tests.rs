use interlock_core::time::Timestamp;

use super::*;

const VAULT: &str = r#"
[provider.corp]
kind = "vault"
url = "https://vault.example.org:8200"
login = { method = "approle", role_id = "r", secret_id_file = "secret-id" }
"#;

fn checked(text: &str, tenancy: Tenancy, environment: Option<&str>) -> Result<Credentials, String> {
    let setting = Setting {
        file: Path::new("/etc/interlock/credentials.toml"),
        environment,
        tenancy,
        journal: None,
        clock: Clock::new(|| Timestamp(0)),
    };
    of_text(text, &setting).map_err(|error| error.to_string())
}

fn refusal(text: &str) -> String {
    checked(text, Tenancy::One, None).err().unwrap_or_default()
}

/// With another way into the Vault.
fn with_login(written: &str) -> String {
    VAULT.replace(r#"method = "approle", role_id = "r", secret_id_file = "secret-id""#, written)
}

#[test]
fn workers_sign_in_as_their_platform_names_them() {
    for written in [
        r#"method = "jwt", mount = "kubernetes", role = "r", jwt_file = "token""#,
        r#"method = "jwt", mount = "team/azure", role = "r", jwt_file = "t", fields = { vm_name = "v" }"#,
        r#"method = "aws", role = "r""#,
        r#"method = "aws", mount = "aws-prod", role = "r", region = "eu-central-1", server_id = "vault.example.org""#,
        r#"method = "aws", role = "r", credentials_file = "aws", profile = "worker""#,
    ] {
        assert_eq!(refusal(&with_login(written)), "", "{written}");
    }
}

#[test]
fn an_environment_in_which_no_run_acts_is_told() {
    let names = ["prod", "default", "*", "none", "staging2", "eu"].map(|name| (name.to_owned(), "corp".to_owned()));
    let written = BTreeMap::from(names);
    let found: Vec<&str> = environments_without_runs(&written, "eu").collect();
    assert_eq!(found, ["staging2"]);
    assert!(meant("staging2").contains("`staging`"), "{}", meant("staging2"));
}

#[test]
fn what_is_not_understood_is_refused() {
    for (text, says) in [
        (String::new(), "there is no provider"),
        (VAULT.replace("https://vault", "http://vault"), "it has to begin with https://"),
        (VAULT.replace(":8200", ":8200/v1"), "only the server's address"),
        (VAULT.replace("role_id", "roleid"), "unknown field `roleid`"),
        (VAULT.replace("url", "adress = 1\nurl"), "unknown field `adress`"),
        (VAULT.replace("approle", "root"), "unknown variant `root`"),
        (format!("{VAULT}\n[environment]\nprod = \"other\""), "there is no [provider.other]"),
        (
            format!("{VAULT}\n[environment]\nprod = \"corp\""),
            "environment is `default`, and [environment] has only `prod`",
        ),
        (format!("{VAULT}\n[provider.b]\nkind = \"environment\""), "there are several providers"),
        (format!("{VAULT}\n[provider.corp.secret.A]\nengine = \"kv2\"\npath = \"a/../b\""), "is not a path"),
        (format!("{VAULT}\n[provider.corp.secret.A]\nengine = \"kv2\"\npath = \"a?x=1\""), "is not a path"),
        (format!("{VAULT}\n[provider.corp.secret.A-B]\nengine = \"kv2\"\npath = \"a\""), "letters, digits"),
        (
            format!("{VAULT}\n[provider.corp.secret.A]\nengine = \"dynamic\"\nmount = \"m\"\npath = \"a\""),
            "has its mount already",
        ),
        (
            with_login(r#"method = "jwt", role = "r", jwt_file = "t", fields = { role = "other" }"#),
            "stands beside `fields`",
        ),
        (with_login(r#"method = "aws", role = "r", region = "Frankfurt am Main""#), "is no region of AWS"),
        (with_login(r#"method = "aws", role = "r", server_id = "a b""#), "login.server_id"),
        (with_login(r#"method = "aws", role = "r", profile = "p""#), "name the credentials_file"),
        (with_login(r#"method = "aws", role = "r", secret_access_key = "k""#), "unknown field `secret_access_key`"),
    ] {
        assert!(refusal(&text).contains(says), "{says}: {}", refusal(&text));
    }
}

#[test]
fn a_worker_of_several_tenants_keeps_them_apart() {
    let one = format!("{VAULT}\n[provider.corp.secret.A]\nengine = \"kv2\"\npath = \"a\"");
    let each = one.replace("\"a\"", "\"{tenant}/a\"");
    assert!(checked(&one, Tenancy::One, None).is_ok());
    assert!(checked(&one, Tenancy::Several, None).err().unwrap().contains("{tenant}"));
    assert!(checked(&each, Tenancy::Several, None).is_ok());
    let variables = "[provider.test]\nkind = \"environment\"\n";
    assert!(checked(variables, Tenancy::Several, None).err().unwrap().contains("know no tenants"));
}

#[test]
fn environments_pick_their_provider() {
    let text =
        format!("{VAULT}\n[provider.test]\nkind = \"environment\"\n[environment]\nprod = \"corp\"\ndev = \"test\"\n");
    assert!(checked(&text, Tenancy::One, Some("prod")).is_ok());
    assert!(checked(&text, Tenancy::One, Some("dev")).is_ok());
    assert!(checked(&text, Tenancy::One, Some("staging")).is_err());
}
