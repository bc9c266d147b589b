//! CreateTable.

use std::sync::Arc;

use zenobe_store::{Batch, Key, Value};

use crate::Engine;
use crate::catalog::Table;
use crate::catalog::edit::Edit;
use crate::command::{CreateIndex, CreateTable};
use crate::error::Result;
use crate::lease::Lease;
use crate::schema::{
    BillingMode, Filling, IndexDefinition, IndexId, IndexKind, IndexStatus, StreamSettings,
    TableDefinition, TableDescription, TableId, Throughput,
};
use crate::streams;
use crate::tables::{encryption, throughput};

impl Engine {
    /// Creates a table. It is ready for use when this returns.
    pub async fn create_table(&self, request: CreateTable) -> Result<TableDescription> {
        self.check_mode_tag(&request.tags)?;
        let nobodys = Lease::default();
        let table = self.new_table(request, None, &nobodys, &[], |_, _| Ok(())).await?;
        Ok(TableDescription {
            definition: table.definition().clone(),
            statistics: Default::default(),
            index_statistics: Default::default(),
        })
    }

    /// Creates a table, which a job may still have to fill. `add` gets the values of `also`, further
    /// keys that the write reads and locks, and adds to the same write.
    pub(crate) async fn new_table(
        &self,
        request: CreateTable,
        filling: Option<Filling>,
        lease: &Lease,
        also: &[Key],
        add: impl Fn(&[Option<Value>], &mut Batch) -> Result<()> + Send + Sync,
    ) -> Result<Arc<Table>> {
        let now_ms = self.clock.now_ms();
        let uuid = self.random.uuid();
        let stream = match request.stream {
            Some(view_type) => {
                let latest = self.latest_stream_label(&request.table).await?;
                Some(self.new_stream(view_type, latest.as_deref()))
            }
            None => None,
        };
        let build = |id: TableId, reads: &[Option<Value>]| {
            let definition = self.new_definition(&request, id, &uuid, stream.clone(), now_ms)?;
            let mut edit = Edit::new(TableDefinition { filling: filling.clone(), ..definition });
            streams::put_row(&edit.definition, &mut edit.batch);
            add(reads, &mut edit.batch)?;
            Ok(edit)
        };
        self.catalog.create(&*self.store, &request.table, lease, also, build).await
    }

    fn new_definition(
        &self,
        request: &CreateTable,
        id: TableId,
        uuid: &str,
        stream: Option<StreamSettings>,
        now_ms: u64,
    ) -> Result<TableDefinition> {
        throughput::check_limits(&self.limits, &request.throughput, None)?;
        for index in &request.global_indexes {
            throughput::check_limits(&self.limits, &index.throughput, Some(&index.name))?;
        }
        let mut index_ids = 1..;
        let mut number = |(index, kind): (&CreateIndex, IndexKind)| {
            let id = index_ids.next().expect("a table has few indexes");
            new_index(index, IndexId(id), kind, request.billing_mode)
        };
        let local = request.local_indexes.iter().map(|index| (index, IndexKind::Local));
        let global = request.global_indexes.iter().map(|index| (index, IndexKind::Global));
        let local_indexes = local.map(&mut number).collect::<Result<Vec<_>>>()?;
        let global_indexes = global.map(&mut number).collect::<Result<Vec<_>>>()?;
        let on_demand = request.billing_mode == BillingMode::PayPerRequest;
        let namespace = &request.table.namespace;
        let kms_key = request.kms_key.as_ref();
        Ok(TableDefinition {
            id,
            uuid: uuid.to_owned(),
            namespace: (**namespace).clone(),
            name: request.table.name.clone(),
            created_at_ms: now_ms,
            version: 1,
            attribute_types: request.attribute_types.clone(),
            keys: request.keys.clone(),
            next_index_id: index_ids.start,
            local_indexes,
            global_indexes,
            billing_mode: request.billing_mode,
            on_demand_since_ms: on_demand.then_some(now_ms),
            throughput: throughput::initial(request.billing_mode, &request.throughput, None)?,
            latest_stream_label: stream.as_ref().map(|stream| stream.label.clone()),
            stream,
            kms_key_arn: kms_key.map(|key| encryption::key_arn(namespace, key)),
            table_class: request.table_class.map(|class| (class, None)),
            previous_table_class_change_ms: None,
            deletion_protection: request.deletion_protection,
            tags: request.tags.clone(),
            ttl_attribute: None,
            ttl_changed_at_ms: None,
            ttl_indexed: false,
            history: None,
            holds: Vec::new(),
            history_eras: 0,
            insights: None,
            filling: None,
        })
    }
}

/// An index created with its table has nothing to backfill, so it is active at once.
fn new_index(
    index: &CreateIndex,
    id: IndexId,
    kind: IndexKind,
    mode: BillingMode,
) -> Result<IndexDefinition> {
    let throughput = match kind {
        IndexKind::Local => Throughput::default(),
        IndexKind::Global => throughput::initial(mode, &index.throughput, Some(&index.name))?,
    };
    Ok(IndexDefinition {
        id,
        name: index.name.clone(),
        kind,
        keys: index.keys.clone(),
        projection: index.projection.clone(),
        status: IndexStatus::Active,
        throughput,
        insights: None,
    })
}
