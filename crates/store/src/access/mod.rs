//! The handles through which a server's routes reach the store, each as narrow as its purpose. [`TenantStore`] is the
//! common one: one tenant's rows, and no other's. What has to look across tenants has a name of its own: [`SignIn`]
//! finds out whose credential a request brings, [`Installation`] manages the tenants themselves, [`StoreHealth`] tells
//! how the store is.

mod health;
mod installation;
mod sign_in;
mod tenant_store;

pub use health::StoreHealth;
pub use installation::Installation;
pub use sign_in::SignIn;
pub use tenant_store::TenantStore;
