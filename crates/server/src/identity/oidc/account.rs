//! From claims to an account of this server. The account is made at the first sign-in, and takes groups and roles from
//! the provider at every one; an account that an admin has disabled stays so.

use std::collections::BTreeSet;

use interlock_core::limits::GROUPS_MAX;
use interlock_core::tenant::identity::Roles;
use interlock_engine::EngineError;
use interlock_store::{ChangeUser, Changed, UserRow};
use serde_json::{Value, json};

use super::token::Claims;
use super::{OidcError, OidcOptions, Provider};
use crate::api_error::ApiError;
use crate::identity::{Identity, access, note, people};

/// How many names are tried for a person whose name another account has.
const NAMES_TRIED: u32 = 20;

impl Provider {
    pub async fn account(&self, identity: &Identity, claims: &Claims) -> Result<UserRow, ApiError> {
        let OidcOptions { issuer, tenant, .. } = self.options();
        let subject = text(claims, "sub").ok_or_else(|| OidcError::Nonsense("it names no subject".into()))?;
        let groups = self.groups(claims);
        let roles = self.roles(&groups);
        if roles.is_empty() {
            let why = "you are in none of the groups that have a role here; ask an admin to map one of yours";
            return Err(OidcError::Refused(why.into()).into());
        }
        for _ in 0..people::CHANGE_TRIES {
            let known = identity.engine().for_tenant(*tenant).user_vouched(issuer, subject).await?;
            let Some(read) = known else { return self.new_account(identity, claims, &groups, roles).await };
            let mut user = read.clone();
            if user.disabled_at.is_some() {
                return Err(OidcError::Refused("your account is disabled; ask an admin".into()).into());
            }
            let sorted = |groups: &[String]| groups.iter().cloned().collect::<BTreeSet<_>>();
            let changed = sorted(&user.groups) != sorted(&groups) || user.roles != roles;
            if changed {
                // Whoever changed it there: for this server it is a change of access like that of an admin.
                access::record(&mut user, issuer.clone(), identity.engine().now());
            }
            user.groups.clone_from(&groups);
            user.roles = roles;
            user.display_name = text(claims, "name").map(str::to_owned).or(user.display_name);
            user.email = text(claims, "email").map(str::to_owned).or(user.email);
            let write = ChangeUser { read, user: user.clone() };
            // Only what the provider has changed is told.
            let answer = if changed {
                let details = json!({ "name": user.name, "roles": user.roles, "groups": user.groups });
                let what = note::done("user.changed", Some(issuer.clone()), user.id, &details);
                identity.write_noted(*tenant, write, what).await?
            } else {
                identity.write(*tenant, write).await?
            };
            // Where another change was faster, such as that an admin has disabled the account, it is looked at anew.
            if answer == Changed::Done {
                return Ok(user);
            }
        }
        Err(EngineError::Overloaded.into())
    }

    /// The account of a person whom the provider vouches for the first time.
    async fn new_account(
        &self,
        identity: &Identity,
        claims: &Claims,
        groups: &[String],
        roles: Roles,
    ) -> Result<UserRow, ApiError> {
        let OidcOptions { issuer, tenant, .. } = self.options();
        let subject = text(claims, "sub").unwrap_or_default();
        let wanted = self.name(claims);
        for number in 1..=NAMES_TRIED {
            let name = if number == 1 { wanted.clone() } else { format!("{wanted}.{number}") };
            let user = UserRow {
                display_name: text(claims, "name").map(str::to_owned),
                email: text(claims, "email").map(str::to_owned),
                roles,
                groups: groups.to_vec(),
                issuer: Some(issuer.clone()),
                subject: Some(subject.to_owned()),
                created_by: Some(issuer.clone()),
                ..identity.new_user(*tenant, name)
            };
            match identity.add_user(user).await {
                // A name belongs to the account that had it first: the same name at the provider is not the same
                // person.
                Err(error) if error.code() == "USER_EXISTS" => {}
                added => return added,
            }
        }
        Err(OidcError::Refused(format!("too many people are called `{wanted}` here")).into())
    }

    /// How the person is called here, if the name is not another account's.
    pub(crate) fn name(&self, claims: &Claims) -> String {
        let fitting = |claim: &String| people::person_name(text(claims, claim)?.to_owned()).ok();
        let subject = text(claims, "sub").unwrap_or_default();
        self.options().name_claims.iter().find_map(fitting).unwrap_or_else(|| {
            // A subject of any form, made into a name.
            let hash = interlock_core::json::Hash::of(subject.as_bytes()).to_string();
            format!("person-{}", &hash[..12])
        })
    }

    fn groups(&self, claims: &Claims) -> Vec<String> {
        let listed = match claims.get(&self.options().groups_claim) {
            Some(Value::Array(groups)) => groups.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            Some(Value::String(group)) => vec![group.clone()],
            _ => Vec::new(),
        };
        // Those with a role come first, should there be more than a person may have here.
        let (mut kept, others): (Vec<_>, Vec<_>) =
            listed.into_iter().partition(|group| self.options().roles.contains_key(group));
        kept.extend(others);
        kept.retain(|group| !group.is_empty() && group.len() <= interlock_core::limits::NAME_BYTES_MAX);
        kept.truncate(GROUPS_MAX);
        kept
    }

    fn roles(&self, groups: &[String]) -> Roles {
        let mapped = groups.iter().filter_map(|group| self.options().roles.get(group));
        mapped.flat_map(|roles| roles.iter()).chain(self.options().default_roles.iter()).collect()
    }
}

fn text<'a>(claims: &'a Claims, name: &str) -> Option<&'a str> {
    claims.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
}
