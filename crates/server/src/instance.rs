//! A database, and what serves it: triggers, admin requests, other AWS services, observers.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use zenobe_database::{Database, ManualClock};
use zenobe_monitoring::cloudwatch::{CloudWatch, InsightReports};
use zenobe_monitoring::cost::CostRecorder;
use zenobe_monitoring::minute::MinuteWorker;
use zenobe_monitoring::traffic::TrafficSink;
use zenobe_scaling::Scaling;

use crate::admin::{Admin, Surroundings};
use crate::dispatch::ApiHandler;
use crate::observer::Observability;
use crate::services::{
    AutoScaling, AwsService, CloudWatchService, HotKeyReports, ScalingAlarms, Services,
};
use crate::triggers::Triggers;

pub struct Instance {
    pub database: Database,
    pub triggers: Arc<Triggers>,
    pub admin: Arc<Admin>,
    /// The clock, if it can be driven.
    pub clock: Option<Arc<ManualClock>>,
    /// What watches the requests.
    pub observability: Observability,
    /// Stores the traffic of every minute, if it is counted.
    minutes: Option<Arc<MinuteWorker>>,
    handler: ApiHandler,
    /// Scales tables minute by minute.
    scaling: JoinHandle<()>,
}

impl Instance {
    /// Must be called within a runtime, which does the work that no request waits for.
    pub fn new(
        database: Database,
        triggers: Arc<Triggers>,
        clock: Option<Arc<ManualClock>>,
        surroundings: Surroundings,
    ) -> Instance {
        let observability = surroundings.observability.clone();
        let scaling = Arc::new(Scaling::new(database.engine().clone()));
        let cloudwatch = start_cloudwatch(&database, &observability, &scaling);
        let minutes = start_minutes(&database, &observability, cloudwatch.as_ref());
        let admin = Admin::new(
            database.clone(),
            clock.clone(),
            triggers.clone(),
            minutes.clone(),
            cloudwatch.clone(),
            scaling.clone(),
            surroundings,
        );
        let admin = Arc::new(admin);
        let (api, store) = (database.api(), database.store());
        let cloudwatch =
            cloudwatch.map(|it| Arc::new(CloudWatchService(it)) as Arc<dyn AwsService>);
        let auto_scaling = Some(Arc::new(AutoScaling(scaling.clone())) as Arc<dyn AwsService>);
        let services = Services { cloudwatch, auto_scaling };
        let handler =
            ApiHandler::new(api, store, Some(admin.clone()), services, observability.facts);
        let scaling = tokio::spawn(scaling.run());
        Instance { database, triggers, admin, clock, observability, minutes, handler, scaling }
    }

    pub fn handler(&self) -> &ApiHandler {
        &self.handler
    }

    /// Stores the traffic since the last minute. Nothing is stored afterwards.
    pub async fn stop_minutes(&self) {
        if let Some(minutes) = &self.minutes {
            minutes.stop().await;
        }
    }

    /// Lets triggers finish what they deliver, then closes the database.
    pub async fn close(&self) -> Result<(), zenobe_store::Error> {
        self.scaling.abort();
        self.triggers.stop().await;
        self.stop_minutes().await;
        self.database.close().await
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.scaling.abort();
    }
}

/// CloudWatch, if its metrics are kept.
fn start_cloudwatch(
    database: &Database,
    observability: &Observability,
    scaling: &Arc<Scaling>,
) -> Option<Arc<CloudWatch>> {
    let retention_days = u64::from(observability.metrics_retention_days);
    let engine = database.engine();
    let insights = observability.hot_keys.clone().map(|hot_keys| {
        Arc::new(HotKeyReports { hot_keys, engine: engine.clone() }) as Arc<dyn InsightReports>
    });
    let policies = Arc::new(ScalingAlarms(scaling.clone()));
    let start =
        || Arc::new(CloudWatch::new(engine.clone(), retention_days, insights, Some(policies)));
    (retention_days > 0).then(start)
}

/// Hands the traffic of every minute to those who keep it, if somebody does.
fn start_minutes(
    database: &Database,
    observability: &Observability,
    cloudwatch: Option<&Arc<CloudWatch>>,
) -> Option<Arc<MinuteWorker>> {
    let traffic = observability.traffic.clone()?;
    let engine = database.engine();
    let mut sinks: Vec<Arc<dyn TrafficSink>> = Vec::new();
    sinks.extend(cloudwatch.map(|cloudwatch| cloudwatch.clone() as Arc<dyn TrafficSink>));
    if observability.cost_retention_days > 0 {
        sinks.push(Arc::new(CostRecorder::new(engine.clone(), observability.cost_retention_days)));
    }
    let totals = observability.totals.clone();
    Some(MinuteWorker::start(engine.clone(), traffic, totals, sinks, &Handle::current()))
}
