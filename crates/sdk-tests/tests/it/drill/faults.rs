//! What happens to nodes, stores and the network between them.

use std::thread;
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::rngs::StdRng;
use zenobe_testing::{NetworkFault, Signal};

use super::nodes::{LEASE, Node};
use super::stores::{Hoard, Stores};

/// The clocks of nodes differ from the machine's by up to four minutes, so from each other by up to
/// eight. The product allows ten.
pub const CLOCK_OFFSET_S_MAX: i64 = 240;
/// Others have taken over the leases of a node by then.
const PAUSE: Duration = LEASE.saturating_mul(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// `kill -9` of a node. It returns with another clock.
    NodeKilled,
    /// SIGSTOP of a node, until others have taken its leases over.
    NodePaused,
    /// A node can't reach the store. Nothing tells it why.
    NodeSilenced,
    /// The connections of a node break, and it gets no new ones.
    NodeCutOff,
    /// 50 ms from each node to each store, and as much back.
    SlowNetwork,
    /// Every connection of the store ends, and others take all that it has.
    NoConnections,
    /// One in five transactions fails with a serialization failure, one in ten with a deadlock.
    SerializationFailures,
    /// `kill -9` of the primary.
    PrimaryKilled,
    /// `kill -9` of the primary and of the agent that would start it again.
    PrimaryLost,
    /// `kill -9` of a standby and of its agent.
    StandbyLost,
    /// The standbys can't reach the primary, so that it cannot commit.
    StoresCutOff,
    /// The primary reaches neither its standbys nor the other agents. Nodes still reach it.
    PrimaryIsolated,
    /// An operator makes a standby the primary.
    Switchover,
}

impl Fault {
    pub const WITH_ONE_STORE: [Fault; 7] = [
        Fault::NodeKilled,
        Fault::NodePaused,
        Fault::NodeSilenced,
        Fault::NodeCutOff,
        Fault::SlowNetwork,
        Fault::NoConnections,
        Fault::SerializationFailures,
    ];

    pub const WITH_STANDBYS: [Fault; 6] = [
        Fault::PrimaryKilled,
        Fault::PrimaryLost,
        Fault::StandbyLost,
        Fault::StoresCutOff,
        Fault::PrimaryIsolated,
        Fault::Switchover,
    ];

    /// Lets it happen, and makes it good again. Returns when the cause is gone, which is not yet when
    /// everything is well.
    pub fn strike(self, nodes: &mut [Node], stores: &mut Stores, random: &mut StdRng) {
        let number = random.random_range(0..nodes.len());
        let short = Duration::from_millis(random.random_range(200..4_000));
        let node = &mut nodes[number];
        match self {
            Fault::NodeKilled => {
                node.kill();
                thread::sleep(short / 4);
                node.restart(random_offset_s(random));
            }
            Fault::NodePaused => {
                node.signal(Signal::STOP);
                thread::sleep(PAUSE);
                node.signal(Signal::CONT);
            }
            Fault::NodeSilenced => during(short, node, NetworkFault::Silent),
            Fault::NodeCutOff => during(short, node, NetworkFault::Down),
            Fault::SlowNetwork => {
                let delay = Duration::from_millis(50);
                nodes.iter().for_each(|node| node.disturb(NetworkFault::Slow(delay)));
                thread::sleep(Duration::from_secs(4));
                nodes.iter().for_each(|node| node.disturb(NetworkFault::None));
            }
            Fault::NoConnections => take_connections(stores, short),
            Fault::SerializationFailures => fail_transactions(stores),
            Fault::PrimaryKilled
            | Fault::PrimaryLost
            | Fault::StandbyLost
            | Fault::StoresCutOff
            | Fault::PrimaryIsolated
            | Fault::Switchover => {
                let Stores::Patroni(patroni) = stores else { panic!("there is one store") };
                patroni.suffer(self, random);
            }
        }
    }
}

pub fn random_offset_s(random: &mut StdRng) -> i64 {
    random.random_range(-CLOCK_OFFSET_S_MAX..=CLOCK_OFFSET_S_MAX)
}

fn during(time: Duration, node: &Node, fault: NetworkFault) {
    node.disturb(fault);
    thread::sleep(time);
    node.disturb(NetworkFault::None);
}

/// Whatever a node gives back is taken as well.
fn take_connections(stores: &Stores, time: Duration) {
    let mut hoard = Hoard::new(stores.primary_port());
    assert!(hoard.take_all() > 0, "there was no connection to take");
    let deadline = Instant::now() + time;
    while Instant::now() < deadline {
        stores.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
             WHERE application_name = 'zenobe'",
        );
        // Nodes are quick to come back, and get some of them.
        hoard.take_all();
    }
}

/// The store itself fails transactions, at their last statement.
fn fail_transactions(stores: &Stores) {
    stores.execute(
        "CREATE FUNCTION zenobe_fail() RETURNS trigger LANGUAGE plpgsql AS $$
         DECLARE dice float := random();
         BEGIN
             IF dice < 0.2 THEN
                 RAISE EXCEPTION 'could not serialize access' USING ERRCODE = '40001';
             ELSIF dice < 0.3 THEN
                 RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01';
             END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER zenobe_fail BEFORE INSERT ON zenobe_commit
         FOR EACH ROW EXECUTE FUNCTION zenobe_fail()",
    );
    thread::sleep(Duration::from_secs(3));
    stores.execute("DROP TRIGGER zenobe_fail ON zenobe_commit; DROP FUNCTION zenobe_fail()");
}
