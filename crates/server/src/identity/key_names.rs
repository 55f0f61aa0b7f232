//! Rows keep who made them: a person by name, and a key that no person owns by its id. People read the key's name.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use interlock_core::ids::KeyId;
use interlock_core::run::change::key_in_words;

use super::Caller;
use crate::api_error::ApiError;
use crate::state::AppState;

/// Puts `key NAME` in the place of every id of a key. Everything else stays as it is, and so does the id of a key that does
/// not exist for the caller.
pub async fn name_keys(state: &AppState, caller: &Caller, names: Vec<&mut String>) -> Result<(), ApiError> {
    let store = state.for_tenant(caller.tenant);
    let mut known: BTreeMap<KeyId, Option<String>> = BTreeMap::new();
    for name in names {
        let Ok(id) = name.parse::<KeyId>() else { continue };
        let words = match known.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let key = store.key(id).await?.filter(|key| caller.sees(key.workspace.as_deref()));
                unknown.insert(key.map(|key| key_in_words(&key.name, None)))
            }
        };
        if let Some(words) = words {
            name.clone_from(words);
        }
    }
    Ok(())
}
