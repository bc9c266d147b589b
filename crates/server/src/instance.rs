//! A database with what serves it: its triggers and its admin requests.

use std::sync::Arc;

use zenobe_database::{Database, ManualClock};

use crate::admin::{Admin, Surroundings};
use crate::dispatch::ApiHandler;
use crate::triggers::Triggers;

pub struct Instance {
    pub database: Database,
    pub triggers: Arc<Triggers>,
    pub admin: Arc<Admin>,
    /// The clock, if it can be driven.
    pub clock: Option<Arc<ManualClock>>,
    handler: ApiHandler,
}

impl Instance {
    pub fn new(
        database: Database,
        triggers: Arc<Triggers>,
        clock: Option<Arc<ManualClock>>,
        surroundings: Surroundings,
    ) -> Instance {
        let admin = Admin::new(database.clone(), clock.clone(), triggers.clone(), surroundings);
        let admin = Arc::new(admin);
        let (api, store) = (database.api().clone(), database.store().clone());
        let handler = ApiHandler { api, store, admin: Some(admin.clone()) };
        Instance { database, triggers, admin, clock, handler }
    }

    pub fn handler(&self) -> &ApiHandler {
        &self.handler
    }

    /// Lets triggers finish what they deliver, then closes the database.
    pub async fn close(&self) -> Result<(), zenobe_store::Error> {
        self.triggers.stop().await;
        self.database.close().await
    }
}
