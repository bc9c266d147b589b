//! An object store in memory that does what a test wants to the objects whose keys contain a text.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, Extensions, GetOptions, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result, UploadPart,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It stores half of what it is given, and says that all is well.
    StoresHalf,
    /// It stores something else of the same size.
    StoresOther,
    /// It stores nothing, and says that all is well.
    StoresNothing,
    /// It answers with half of what it has.
    ReturnsHalf,
    /// It does not answer.
    Away,
}

type Faults = Arc<Mutex<Vec<(String, Fault, usize)>>>;

#[derive(Debug, Default)]
pub struct FaultyStore {
    below: InMemory,
    /// Which keys, what happens to them, and how often.
    faults: Faults,
    puts: Mutex<Vec<String>>,
}

impl FaultyStore {
    /// The next requests for keys that contain a text have this fault.
    pub fn fail(&self, part: &str, fault: Fault, times: usize) {
        self.faults.lock().unwrap().push((part.to_owned(), fault, times));
    }

    pub fn heal(&self) {
        self.faults.lock().unwrap().clear();
    }

    /// Whether all faults have happened.
    pub fn is_healed(&self) -> bool {
        self.faults.lock().unwrap().iter().all(|(_, _, times)| *times == 0)
    }

    /// The keys that were stored since the last call, in order.
    pub fn take_puts(&self) -> Vec<String> {
        std::mem::take(&mut self.puts.lock().unwrap())
    }

    fn fault(&self, key: &Path, kinds: &[Fault]) -> Option<Fault> {
        fault(&self.faults, key, kinds)
    }
}

fn fault(faults: &Faults, key: &Path, kinds: &[Fault]) -> Option<Fault> {
    let mut faults = faults.lock().unwrap();
    let fits = |(part, fault, times): &&mut (String, Fault, usize)| {
        *times > 0 && kinds.contains(fault) && key.as_ref().contains(&**part)
    };
    let (_, fault, times) = faults.iter_mut().find(fits)?;
    *times -= 1;
    Some(*fault)
}

fn away() -> Error {
    Error::Generic { store: "faulty", source: "503 Slow Down".into() }
}

fn other(bytes: &[u8]) -> Vec<u8> {
    let mut other = bytes.to_vec();
    let middle = other.len() / 2;
    other[middle] ^= 1;
    other
}

fn nothing() -> PutResult {
    PutResult { e_tag: None, version: None, extensions: Extensions::default() }
}

/// An upload whose parts are altered, or that comes to nothing.
#[derive(Debug)]
struct FaultyUpload {
    below: Box<dyn MultipartUpload>,
    fault: Fault,
}

#[async_trait]
impl MultipartUpload for FaultyUpload {
    fn put_part(&mut self, payload: PutPayload) -> UploadPart {
        let bytes = Bytes::from(payload);
        let stored: Bytes = match self.fault {
            Fault::StoresHalf => bytes.slice(..bytes.len() / 2),
            _ => other(&bytes).into(),
        };
        self.below.put_part(stored.into())
    }

    async fn complete(&mut self) -> Result<PutResult> {
        match self.fault {
            Fault::StoresNothing => self.below.abort().await.map(|()| nothing()),
            _ => self.below.complete().await,
        }
    }

    async fn abort(&mut self) -> Result<()> {
        self.below.abort().await
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("faulty")
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(
        &self,
        key: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.puts.lock().unwrap().push(key.to_string());
        let bytes = Bytes::from(payload.clone());
        let kinds = [Fault::StoresHalf, Fault::StoresOther, Fault::StoresNothing, Fault::Away];
        match self.fault(key, &kinds) {
            Some(Fault::StoresHalf) => {
                let half = bytes.slice(..bytes.len() / 2);
                self.below.put_opts(key, half.into(), options).await
            }
            Some(Fault::StoresOther) => {
                self.below.put_opts(key, other(&bytes).into(), options).await
            }
            Some(Fault::StoresNothing) => Ok(nothing()),
            Some(_) => Err(away()),
            None => self.below.put_opts(key, payload, options).await,
        }
    }

    async fn put_multipart_opts(
        &self,
        key: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.puts.lock().unwrap().push(key.to_string());
        let kinds = [Fault::StoresHalf, Fault::StoresOther, Fault::StoresNothing, Fault::Away];
        let fault = self.fault(key, &kinds);
        if fault == Some(Fault::Away) {
            return Err(away());
        }
        let below = self.below.put_multipart_opts(key, options).await?;
        Ok(match fault {
            None => below,
            Some(fault) => Box::new(FaultyUpload { below, fault }),
        })
    }

    async fn get_opts(&self, key: &Path, options: GetOptions) -> Result<GetResult> {
        let is_head = options.head;
        let fault = self.fault(key, &[Fault::Away, Fault::ReturnsHalf]);
        if fault == Some(Fault::Away) {
            return Err(away());
        }
        let found = self.below.get_opts(key, options).await?;
        if fault.is_none() || is_head {
            return Ok(found);
        }
        let (meta, range, attributes) =
            (found.meta.clone(), found.range.clone(), found.attributes.clone());
        let bytes = found.bytes().await?;
        let half = bytes.slice(..bytes.len() / 2);
        let payload = GetResultPayload::Stream(stream::once(async move { Ok(half) }).boxed());
        Ok(GetResult { payload, meta, range, attributes, extensions: Extensions::default() })
    }

    async fn get_ranges(&self, key: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.below.get_ranges(key, ranges).await
    }

    fn delete_stream(
        &self,
        keys: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let faults = Arc::clone(&self.faults);
        let keys = keys.map(move |key| match key {
            Ok(key) if fault(&faults, &key, &[Fault::Away]).is_some() => Err(away()),
            key => key,
        });
        self.below.delete_stream(keys.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let empty = Path::default();
        match self.fault(prefix.unwrap_or(&empty), &[Fault::Away]) {
            Some(_) => stream::once(async { Err(away()) }).boxed(),
            None => self.below.list(prefix),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.below.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.below.copy_opts(from, to, options).await
    }
}
