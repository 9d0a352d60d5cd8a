import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isAlive, type ProcessIdentity } from '../../../operator/garden/host/process-identity.ts';
import type { CloudNode } from '../../../providers/cloud.ts';
import { aws } from './aws/model.ts';
import { azure } from './azure/model.ts';
import { type FakeDNS, fakeDNS } from './dns.ts';
import { setEndpointHook } from './endpoints.ts';
import { type Faults, readFaults, writeFaults } from './faults.ts';
import { gcp } from './gcp/model.ts';
import type { LaunchedInstance } from './launched.ts';
import {
  type Account,
  CLOUDS,
  type CloudModel,
  type CloudName,
  type CloudResource,
  type Endpoint,
  type Properties,
  shortType,
} from './model.ts';
import { DOCUMENTED, grant } from './needs/index.ts';
import { openStore, type RequestSeen } from './store.ts';
import { openTestbed } from './testbed.ts';
import { setTrust, type Trusted } from './trust.ts';
import { awsWeb } from './web/aws.ts';
import { launched, lose } from './web/aws-machines.ts';
import { nodesOfGroup } from './web/aws-node-groups.ts';
import { azureWeb } from './web/azure.ts';
import { nodesOfAgentPool } from './web/azure-agent-pools.ts';
import { loseAzure } from './web/azure-machines.ts';
import { googleWeb } from './web/google.ts';
import { launchedGoogle, loseGoogle } from './web/google-machines.ts';
import { nodesOfPool } from './web/google-node-pools.ts';
import { type ServerTLS, startWeb } from './web/server.ts';
import { holderOf } from './web/tokens.ts';

export type { Failure, Faults } from './faults.ts';
export type { LaunchedInstance } from './launched.ts';
export type { Account, CloudName, CloudResource, Endpoint } from './model.ts';
export { nodePoolsOf } from './node-pools.ts';
export type { RequestSeen } from './store.ts';

const LAUNCHED: Partial<Record<CloudName, typeof launched>> = { aws: launched, gcp: launchedGoogle };
const NODES = { aws: nodesOfGroup, gcp: nodesOfPool, 'azure-native': nodesOfAgentPool };
const LOSE = { aws: lose, gcp: loseGoogle, 'azure-native': loseAzure };
const MODELS: Record<CloudName, CloudModel> = { aws, gcp, 'azure-native': azure };
const PLUGIN = fileURLToPath(new URL('plugin.ts', import.meta.url));

/** Types may be written as Pulumi writes tokens (`aws:eks/cluster:Cluster`) or as it prints them (`aws:eks:Cluster`). */
export interface ResourceFilter {
  type?: string;
  /** Physical name or id. */
  name?: string;
  account?: string;
  /** Tags (labels) that it must bear. */
  tags?: Readonly<Record<string, string>>;
}

/** Where the clouds' own APIs are. */
export interface WebEndpoints {
  /** For any service and region: a signature says which. */
  aws: (service: string, region: string) => string;
  gcp: Record<
    | 'oauth'
    | 'sts'
    | 'iamCredentials'
    | 'metadata'
    | 'resourceManager'
    | 'cloudAsset'
    | 'compute'
    | 'container'
    | 'dns'
    | 'kms'
    | 'iam'
    | 'storage',
    string
  >;
  azure: { login: string; management: string };
}

/** Three clouds in a directory: Pulumi plugins that stand in for aws, gcp and azure-native, and what a test does to them. */
export interface FakeCloud {
  dir: string;
  /** For a project's `plugins.providers[].path`: directories with one executable `pulumi-resource-<name>` each. */
  pluginFolders: Record<CloudName, string>;
  /** Makes the plugins be found in a PULUMI_HOME, in the versions of the SDKs in node_modules. */
  installInto(pulumiHome: string): Promise<void>;
  /** An account whose credentials the cloud takes; a further one of another `number`. */
  account(cloud: CloudName, number?: number): Account;
  /** Has the account take tokens of others with these claims, and no others; undefined: none. In the beginning it takes none. */
  trust(account: Account, trusted: Omit<Trusted, 'account'> | undefined): void;
  /** What exists, oldest first; what is on its way out included. */
  resources(filter?: ResourceFilter): CloudResource[];
  /** The only one. Throws if there is none or more than one. */
  resource(type: string, name?: string): CloudResource;
  /** The instances of an account at AWS or Google that its groups of machines have made by now. */
  instances(account: Account, region: string): Promise<LaunchedInstance[]>;
  /** Takes an instance away behind everybody's back: its group makes another, at Google of the same name. */
  loseInstance(account: Account, region: string, name: string): Promise<void>;
  /** Nodes of a node group, node pool or agent pool, as they are registered: it makes those that are missing. */
  nodes(pool: CloudResource): CloudNode[];
  /** DNS zones of an account, and what is in them. */
  dns(account: Account): FakeDNS;
  /** All that the cloud would say of it now. */
  outputs(resource: CloudResource): Properties;
  tags(resource: CloudResource): Record<string, string>;
  /** Changes it behind Pulumi's back: `change` gets its inputs, to be changed in place. */
  edit(type: string, name: string, change: (inputs: Properties) => void): Promise<void>;
  /** Takes it away behind Pulumi's back, and nothing else. */
  remove(type: string, name: string): Promise<void>;
  faults: {
    get(): Faults;
    /** From now on exactly this is wrong. */
    set(faults: Faults): void;
    /** From now on this is wrong too (or otherwise). */
    add(faults: Faults): void;
    clear(): void;
  };
  /** Puts a real API server behind the managed cluster of this name, whether it is there yet or not. */
  setEndpoint(cluster: string, endpoint: Endpoint): void;
  /** Lets every new managed cluster ask this URL for one; see setEndpointHook. Undefined: none any more. */
  setEndpointHook(url: string | undefined): void;
  /** Whether the cloud would let the bearer of this token in at the managed cluster's API server, as an administrator. */
  isAdministrator(cluster: CloudResource, token: string): boolean;
  /** Everything that was asked of it, in order. */
  requests(filter?: { operation?: RequestSeen['operation']; type?: string; name?: string }): RequestSeen[];
  /**
   * The clouds' own APIs on loopback, as far as Coppice asks them, on the same resources: base URLs, in the forms in which our
   * providers take them. Started at the first call.
   */
  web(): Promise<WebEndpoints>;
  /** Process ids of plugins that still run. */
  processes(): Promise<number[]>;
  /** Ends the plugins' processes and takes the directory away. */
  close(): Promise<void>;
}

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

async function writePlugin(folder: string, name: CloudName, dir: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, `pulumi-resource-${name}`);
  // A path of Node's own: PATH is the runner's affair.
  await writeFile(file, `#!/bin/sh\nexec ${[process.execPath, PLUGIN, name, dir].map(quoted).join(' ')} "$@"\n`);
  await chmod(file, 0o700);
}

const versionOf = (name: CloudName): string =>
  createRequire(import.meta.url)(`@pulumi/${name}/package.json`).version as string;

const lets = ({ clusterName, principalArn, policyArn }: Properties, cluster: string, principal: string): boolean =>
  clusterName === cluster && principalArn === principal && policyArn.endsWith('/AmazonEKSClusterAdminPolicy');

const shortTypes = <T>(values: Record<string, T>): Record<string, T> =>
  Object.fromEntries(Object.entries(values).map(([type, value]) => [shortType(type), value]));

const withShortTypes = (faults: Faults): Faults => ({
  ...faults,
  ...(faults.latencyMs && { latencyMs: shortTypes(faults.latencyMs) }),
  ...(faults.quotas && { quotas: shortTypes(faults.quotas) }),
  ...(faults.unreadableForMs && { unreadableForMs: shortTypes(faults.unreadableForMs) }),
  ...(faults.failures && { failures: faults.failures.map((one) => ({ ...one, type: shortType(one.type) })) }),
});

/**
 * Makes an empty cloud in `dir` (a new directory where it is absent). Accounts `account(cloud)` exist from the first call.
 * @param options.tls with which `web` serves; absent: without TLS
 * @param options.granted the documented permissions of which mode all accounts have; absent: those of all modes
 */
export async function fakeCloud(
  options: { dir?: string; tls?: ServerTLS; granted?: keyof typeof DOCUMENTED } = {},
): Promise<FakeCloud> {
  const dir = options.dir ?? (await mkdtemp(join(tmpdir(), 'coppice-fake-cloud-')));
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const store = openStore(dir);
  grant(store, DOCUMENTED[options.granted ?? 'all']);
  const pluginFolders = Object.fromEntries(CLOUDS.map((name) => [name, join(dir, 'plugins', name)])) as Record<
    CloudName,
    string
  >;
  for (const name of CLOUDS) await writePlugin(pluginFolders[name], name, dir);

  const tags = (resource: CloudResource) => MODELS[resource.cloud].tags(resource);
  const resources = ({ type, name, account, tags: wanted = {} }: ResourceFilter = {}): CloudResource[] =>
    store
      .list()
      .filter((one) => !one.retired)
      .filter((one) => type === undefined || one.type === shortType(type))
      .filter((one) => name === undefined || one.name === name || one.id === name)
      .filter((one) => account === undefined || one.account === account)
      .filter((one) => Object.entries(wanted).every(([key, value]) => tags(one)[key] === value));
  const resource = (type: string, name?: string): CloudResource => {
    const found = resources({ type, ...(name !== undefined && { name }) });
    if (found.length === 1) return found[0]!;
    throw new Error(`the fake cloud has ${found.length} resources ${type} ${name ?? ''}: one was expected`);
  };
  const testbedOf = ({ cloud, id, principal }: Account, region: string) => {
    const caller = { account: id, principal, region, defaultTags: {} };
    return openTestbed(MODELS[cloud], store, caller, region, Date.now());
  };
  const processes = async (): Promise<ProcessIdentity[]> => {
    const known = store.listJSON<ProcessIdentity>('processes');
    const alive = await Promise.all(known.map(isAlive));
    return known.filter((_, index) => alive[index]);
  };
  const set = (faults: Faults) => writeFaults(store, withShortTypes(faults));

  const servers: Server[] = [];
  let endpoints: Promise<WebEndpoints> | undefined;
  async function startWebs(): Promise<WebEndpoints> {
    const [amazon, google, microsoft] = await Promise.all(
      [awsWeb, googleWeb, azureWeb].map(async (web) => {
        const { url, server } = await startWeb(web, store, options.tls);
        servers.push(server);
        return url;
      }),
    );
    const apis = [
      'oauth',
      'sts',
      'iamCredentials',
      'metadata',
      'resourceManager',
      'cloudAsset',
      'compute',
      'container',
      'dns',
      'kms',
      'iam',
      'storage',
    ];
    return {
      aws: () => amazon!,
      gcp: Object.fromEntries(apis.map((api) => [api, google!])) as WebEndpoints['gcp'],
      azure: { login: `${microsoft}/login`, management: microsoft! },
    };
  }

  return {
    dir,
    pluginFolders,
    async installInto(pulumiHome) {
      for (const name of CLOUDS) {
        const folder = join(pulumiHome, 'plugins', `resource-${name}-v${versionOf(name)}`);
        await mkdir(folder, { recursive: true, mode: 0o700 });
        const file = `pulumi-resource-${name}`;
        await rm(join(folder, file), { force: true });
        await symlink(join(pluginFolders[name], file), join(folder, file));
      }
    },
    account(cloud, number = 1) {
      const fresh = MODELS[cloud].newAccount(number);
      const accounts = store.accounts();
      const known = accounts.find((one) => one.cloud === cloud && one.id === fresh.id);
      if (!known) store.writeJSON([...accounts, fresh], 'accounts.json');
      return known ?? fresh;
    },
    trust: (account, trusted) => setTrust(store, account, trusted),
    instances: (account, region) =>
      store.transaction(() => LAUNCHED[account.cloud]!(testbedOf(account, region), store)),
    loseInstance: (account, region, name) =>
      store.transaction(() => LOSE[account.cloud](name, testbedOf(account, region), store)),
    nodes(pool) {
      const caller = { account: pool.account, principal: '', region: pool.region, defaultTags: {} };
      const testbed = openTestbed(MODELS[pool.cloud], store, caller, pool.region, Date.now());
      return NODES[pool.cloud](testbed.all(pool.type).find(({ uid }) => uid === pool.uid)!, testbed, store);
    },
    dns: (account) => fakeDNS(store, account),
    resources,
    resource,
    outputs(one) {
      const caller = { account: one.account, principal: '', region: one.region, defaultTags: one.defaultTags };
      return openTestbed(MODELS[one.cloud], store, caller, one.region, Date.now()).outputs(one);
    },
    tags,
    edit: (type, name, change) =>
      store.transaction(() => {
        const found = resource(type, name);
        const inputs = structuredClone(found.inputs);
        change(inputs);
        store.put({ ...found, inputs, generation: found.generation + 1 });
      }),
    remove: (type, name) => store.transaction(() => store.remove(resource(type, name))),
    faults: {
      get: () => readFaults(store),
      set,
      add: (faults) => set({ ...readFaults(store), ...faults }),
      clear: () => set({}),
    },
    setEndpoint: (cluster, endpoint) => store.writeJSON(endpoint, 'endpoints', `${cluster}.json`),
    setEndpointHook: (url) => setEndpointHook(store, url),
    isAdministrator(cluster, token) {
      const { revoked = [] } = readFaults(store);
      const usable = store.accounts().filter((one) => one.cloud === cluster.cloud && !revoked.includes(one.key));
      const holder = holderOf(cluster.cloud, token, cluster.name, usable, Date.now());
      if (holder?.id !== cluster.account) return false;
      // IAM lets the owners of a project or subscription in; EKS only whom an entry of the cluster names.
      const entries = resources({ type: 'aws:eks:AccessPolicyAssociation', account: cluster.account });
      return cluster.cloud !== 'aws' || entries.some(({ inputs }) => lets(inputs, cluster.name, holder.principal));
    },
    requests: ({ operation, type, name } = {}) =>
      store
        .requests()
        .filter((one) => operation === undefined || one.operation === operation)
        .filter((one) => type === undefined || one.type === shortType(type))
        .filter((one) => name === undefined || one.name === name),
    processes: async () => (await processes()).map(({ pid }) => pid),
    web: () => (endpoints ??= startWebs()),
    async close() {
      for (const server of servers) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
      for (const one of await processes()) process.kill(one.pid, 'SIGKILL');
      while ((await processes()).length > 0) await sleep(10);
      // What was asked for in passing may still be written down.
      await rm(dir, { recursive: true, force: true, maxRetries: 10 });
    },
  };
}
