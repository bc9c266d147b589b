//! A database with what serves it: its triggers and its admin requests.

use std::sync::{Arc, Weak};

use zenobe_backup::ship::ShippingStatus;
use zenobe_database::{Database, ManualClock};

use crate::admin::Admin;
use crate::dispatch::ApiHandler;
use crate::test_control::TestControl;
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
    /// `control` leads nowhere on a server that tests don't control.
    pub fn new(
        database: Database,
        triggers: Arc<Triggers>,
        clock: Option<Arc<ManualClock>>,
        control: Weak<TestControl>,
        shipping: Option<Arc<ShippingStatus>>,
    ) -> Instance {
        let (clock_of_admin, served) = (clock.clone(), database.clone());
        let admin = Admin::new(served, clock_of_admin, triggers.clone(), control, shipping);
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
