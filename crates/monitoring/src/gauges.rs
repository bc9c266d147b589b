//! What tables and accounts may use, as their definitions and quotas say: the metrics that do not depend on
//! requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use zenobe_engine::command::TableName;
use zenobe_engine::schema::{BillingMode, Namespace, TableDefinition, TableId, Throughput};
use zenobe_engine::throughput::cause::Access;
use zenobe_engine::{Engine, Limits};

/// The definitions of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gauges {
    /// Tables and global indexes, oldest tables first.
    pub throughput: Vec<ThroughputGauge>,
    pub accounts: BTreeMap<Arc<Namespace>, AccountGauges>,
}

/// The throughput of a table or of a global index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThroughputGauge {
    pub table: TableName,
    pub table_id: TableId,
    pub index: Option<String>,
    /// Whether the units are provisioned; otherwise they are the maximum on demand.
    pub is_provisioned: bool,
    pub read_units: Option<u64>,
    pub write_units: Option<u64>,
}

/// What an account has, and the provisioned units of it all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountGauges {
    pub tables: u64,
    pub read_units: u64,
    pub write_units: u64,
    /// Of a single table or index.
    read_units_max: u64,
    write_units_max: u64,
    /// The quota of all tables together, for reads as for writes.
    pub units_quota: u64,
    /// The quota of a single table.
    pub table_units_quota: u64,
}

impl Gauges {
    pub fn of(engine: &Engine) -> Gauges {
        let limits = engine.limits();
        let tables = engine.known_tables();
        let mut tables: Vec<_> = tables.values().collect();
        tables.sort_by_key(|table| table.definition().id);
        let mut gauges = Gauges { throughput: Vec::new(), accounts: BTreeMap::new() };
        for table in tables {
            let (name, definition) = (table.name(), table.definition());
            let account = gauges.accounts.entry(Arc::clone(&name.namespace));
            let account = account.or_insert_with(|| AccountGauges::new(limits));
            account.tables += 1;
            let indexes = definition.global_indexes.iter();
            let indexes = indexes.map(|index| (Some(&index.name), &index.throughput));
            for (index, throughput) in [(None, &definition.throughput)].into_iter().chain(indexes) {
                let gauge = ThroughputGauge::new(name, definition, index, throughput);
                account.add(&gauge);
                gauges.throughput.push(gauge);
            }
        }
        gauges
    }
}

impl ThroughputGauge {
    fn new(
        table: &TableName,
        definition: &TableDefinition,
        index: Option<&String>,
        throughput: &Throughput,
    ) -> ThroughputGauge {
        let is_provisioned = definition.billing_mode == BillingMode::Provisioned;
        let (read_units, write_units) = match is_provisioned {
            true => (Some(throughput.read_units), Some(throughput.write_units)),
            false => (throughput.on_demand_max_read_units, throughput.on_demand_max_write_units),
        };
        ThroughputGauge {
            table: table.clone(),
            table_id: definition.id,
            index: index.cloned(),
            is_provisioned,
            read_units,
            write_units,
        }
    }
}

impl AccountGauges {
    fn new(limits: &Limits) -> AccountGauges {
        AccountGauges {
            tables: 0,
            read_units: 0,
            write_units: 0,
            read_units_max: 0,
            write_units_max: 0,
            units_quota: limits.account_capacity_units_max,
            table_units_quota: limits.table_capacity_units_max,
        }
    }

    fn add(&mut self, gauge: &ThroughputGauge) {
        if let (true, Some(read), Some(write)) =
            (gauge.is_provisioned, gauge.read_units, gauge.write_units)
        {
            self.read_units += read;
            self.write_units += write;
            self.read_units_max = self.read_units_max.max(read);
            self.write_units_max = self.write_units_max.max(write);
        }
    }

    /// How much of the account's quota is provisioned, in percent.
    pub fn utilization(&self, access: Access) -> f64 {
        let units = match access {
            Access::Read => self.read_units,
            Access::Write => self.write_units,
        };
        percent(units, self.units_quota)
    }

    /// How much of a table's quota the largest table or index has provisioned, in percent.
    pub fn table_utilization(&self, access: Access) -> f64 {
        let units = match access {
            Access::Read => self.read_units_max,
            Access::Write => self.write_units_max,
        };
        percent(units, self.table_units_quota)
    }
}

fn percent(units: u64, of: u64) -> f64 {
    units as f64 / of as f64 * 100.0
}
