import { setTimeout as delay } from 'node:timers/promises';
import { API_VERSION } from '../../operator/api/group.ts';
import type { Hub } from '../../operator/api/hub.ts';
import type { Membership } from '../../operator/api/membership.ts';
import { OpenClusters } from '../../operator/clusters/open-clusters.ts';
import { gardenIdentity } from '../../operator/controllers/garden-identity.ts';
import { MEMBERSHIP_RECEIPTS } from '../../operator/controllers/membership/receipt.ts';
import { wireHubs } from '../../operator/controllers/membership/wiring.ts';
import { CLUSTER_INVENTORY, INVENTORY } from '../../operator/garden/daemon/inventory.ts';
import { applyKinds, applyObjects } from '../../operator/garden/daemon/manifests.ts';
import { CLUSTERPROFILES } from '../../operator/hubs/cluster-profile.ts';
import { KubeClient } from '../../operator/kube/client.ts';
import { runController } from '../../operator/kube/controller.ts';
import { EventRecorder } from '../../operator/kube/events.ts';
import { Informer, waitFor } from '../../operator/kube/informer.ts';
import { parseUntrustedKubeconfig } from '../../operator/kube/kubeconfig.ts';
import { silent } from '../../operator/kube/log.ts';
import type { KubeClientOptions, RequestOptions, RequestSeen } from '../../operator/kube/requests/api-requests.ts';
import {
  CLOUDPROFILES,
  HUBS,
  MEMBERSHIPS,
  NODES,
  type Node,
  SECRETS,
  WORKERCLUSTERS,
} from '../../operator/kube/resources.ts';
import { WorkQueue } from '../../operator/kube/workqueue.ts';
import { startApiserver } from '../kit/apiserver.ts';
import { addNode } from '../kit/hubs/hub-testbed.ts';
import { serveKinds } from '../kit/hubs/serve-kinds.ts';
import { secondsSince } from './garden.ts';
import { Parts } from './parts.ts';
import type { PartsTable } from './report.ts';

type HubsCore = Parameters<typeof wireHubs>[0];

const AT_ONCE = 32;
const PATIENCE_MS = 600_000;
/** Until Events and counts have been written as well. */
const SETTLE_MS = 5_000;
const IDLE_MS = 60_000;

/** What it calls itself in a member: by another name for each, as one API server stands for them all. */
class OneOfMany extends KubeClient {
  readonly #theirs: string;

  constructor(options: KubeClientOptions, name: string) {
    super(options);
    this.#theirs = `${OWN}-${name}`;
  }

  override async request<T = any>(method: string, path: string, more?: RequestOptions): Promise<T> {
    const renamed = <Part>(part: Part, from: string, to: string): Part =>
      part === undefined ? part : (JSON.parse(JSON.stringify(part).replaceAll(from, to)) as Part);
    const asked = { ...more, body: renamed(more?.body, OWN, this.#theirs) };
    const answer = await super.request<T>(method, path.replaceAll(OWN, this.#theirs), asked);
    return renamed(answer, this.#theirs, OWN);
  }
}

const OWN = `coppice-hub-${INVENTORY.metadata.name}`;

/** Measures what many members of one hub cost: an inventory on a real API server, and the operator's controllers of hubs in this process. */
export class MembersBench {
  readonly #signal: AbortSignal;
  readonly #seconds = new Parts();
  readonly #cpu = new Parts();
  readonly #memory = new Parts();
  readonly #writes = new Parts();

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  tables(): PartsTable[] {
    return [
      ...this.#seconds.inOrder('Members of one hub: time', 's'),
      ...this.#cpu.inOrder("CPU of the operator's controllers for it, with the making of the clusters", 'CPU-s'),
      ...this.#memory.inOrder('Resident memory of that process', 'MiB'),
      ...this.#writes.inOrder('Its writes', 'writes'),
    ];
  }

  async run(count: number): Promise<void> {
    const [garden, member] = await Promise.all([startApiserver(), startApiserver()]);
    try {
      await applyKinds(garden.client, [], this.#signal);
      await applyObjects(garden.client, [], this.#signal);
      await serveKinds(garden.client, [CLUSTER_INVENTORY]);
      await addNode(member, 'one', '4', '8Gi');
      await this.#measure(count, garden, member);
    } finally {
      await Promise.all([garden.stop(), member.stop()]);
    }
  }

  async #measure(count: number, garden: Api, member: Api): Promise<void> {
    const column = `${count} members`;
    const { client: admin } = garden;
    const writes = { garden: 0, member: 0 };
    const counting =
      (side: keyof typeof writes) =>
      ({ method }: RequestSeen) => {
        if (method !== 'GET' && method !== 'WATCH') writes[side]++;
      };
    const client = new KubeClient({ ...parseUntrustedKubeconfig(garden.kubeconfig), onRequest: counting('garden') });
    const inside = parseUntrustedKubeconfig(member.kubeconfig);
    const openClusters = new OpenClusters();
    const recorder = new EventRecorder({ client, component: 'coppice' });
    const core: HubsCore = {
      garden: client,
      gardenID: await gardenIdentity(admin, this.#signal),
      state: { namespace: 'kube-system', directory: undefined },
      log: silent,
      queue: () => new WorkQueue(),
      queues: { clusters: new WorkQueue(), shoots: new WorkQueue() },
      clusters: new Informer(client, WORKERCLUSTERS),
      profiles: new Informer(client, CLOUDPROFILES),
      provider: () => undefined,
      openClusters,
      now: () => new Date(),
      recordEvent: (object, type, reason, message) => recorder.record(object, type, reason, message),
    };
    const wired = wireHubs(core);
    const nodes = new Informer<Node>(member.client, NODES);
    const memberships = new Informer<Membership>(admin, MEMBERSHIPS);
    const hubs = new Informer<Hub>(admin, HUBS);
    const caches = [core.clusters, core.profiles, nodes, memberships, hubs, ...(wired.caches ?? [])] as Informer[];
    for (const cache of caches) cache.start();
    await Promise.all(caches.map((cache) => cache.whenSynced(this.#signal)));
    const running = wired.controllers.map((controller) => runController(controller));
    const until = (what: string, holds: () => boolean) =>
      waitFor([memberships, hubs], () => holds() || undefined, {
        timeoutMs: PATIENCE_MS,
        signal: this.#signal,
        what: () => `${what}; one of those that are left: ${JSON.stringify(memberships.list()[0]?.status)}`,
      });
    const joined = () => hubs.get(INVENTORY.metadata.name)?.status?.joined === count;
    /** Since it was called last. */
    let before = { cpu: process.cpuUsage(), at: performance.now() };
    const used = () => {
      const { user, system } = process.cpuUsage(before.cpu);
      const all = { seconds: secondsSince(before.at), cpu: (user + system) / 1e6, ...writes };
      Object.assign(writes, { garden: 0, member: 0 });
      before = { cpu: process.cpuUsage(), at: performance.now() };
      return all;
    };
    try {
      await admin.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
      await admin.apply(INVENTORY);
      const names = Array.from({ length: count }, (_, index) => `c${String(index).padStart(5, '0')}`);
      used();
      await each(names, (name) => admin.create(workerCluster(name)));
      for (const name of names) {
        const opened = new OneOfMany({ ...inside, onRequest: counting('member') }, name);
        const pods = { list: () => [] };
        openClusters.add(`shop/${name}`, {
          client: opened,
          server: member.url,
          nodes,
          pods,
          answers: true,
          onStop: () => {},
        });
      }
      await until('all to join', joined);
      this.#seconds.add('first WorkerCluster made to all joined', column, secondsSince(before.at));
      await delay(SETTLE_MS, undefined, { signal: this.#signal });
      const join = used();
      this.#cpu.add('for the joins', column, join.cpu);
      this.#memory.add('when all have joined', column, process.memoryUsage.rss() / 2 ** 20);
      this.#writes.add('for each join, to the garden', column, join.garden / count);
      this.#writes.add('for each join, inside the cluster, with its token', column, join.member / count);

      await delay(IDLE_MS, undefined, { signal: this.#signal });
      const idle = used();
      this.#writes.add('in a minute in which nothing happens', column, idle.garden + idle.member);
      this.#cpu.add('for that minute', column, idle.cpu);

      await each(names, (name) => admin.delete(WORKERCLUSTERS, name, 'shop'));
      await until('all to leave', () => memberships.size === 0);
      this.#seconds.add('first DELETE to all have left', column, secondsSince(before.at));
      await delay(SETTLE_MS, undefined, { signal: this.#signal });
      const leave = used();
      this.#cpu.add('for the leaves', column, leave.cpu);
      this.#writes.add('for each leave', column, (leave.garden + leave.member) / count);
      const [profiles, receipts] = await Promise.all([
        admin.list(CLUSTERPROFILES),
        admin.list(SECRETS, { labelSelector: MEMBERSHIP_RECEIPTS }),
      ]);
      if (profiles.items.length + receipts.items.length > 0)
        throw new Error(`${profiles.items.length} ClusterProfiles and ${receipts.items.length} receipts are left`);
    } finally {
      await Promise.all(running.map((controller) => controller.stop(0)));
      await wired.close?.();
      await Promise.all(caches.map((cache) => cache.stop()));
      await client.close();
    }
  }
}

type Api = Awaited<ReturnType<typeof startApiserver>>;

/** Held, so that a deletion begins and does not end. */
const workerCluster = (name: string) => ({
  apiVersion: API_VERSION,
  kind: 'WorkerCluster',
  metadata: { name, namespace: 'shop', finalizers: [`${API_VERSION.split('/')[0]}/bench`] },
  spec: { cloudProvider: 'local', dataPlaneNodes: 1 },
});

async function each(names: readonly string[], act: (name: string) => Promise<unknown>): Promise<void> {
  const left = [...names];
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let name = left.shift(); name; name = left.shift()) await act(name);
    }),
  );
}
