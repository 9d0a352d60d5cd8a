import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { CloudProfile } from '../../operator/api/cloudprofile.ts';
import { silent } from '../../operator/kube/log.ts';
import { awsClusters } from '../../providers/aws/index.ts';
import { azureClusters } from '../../providers/azure/index.ts';
import type { CloudContext, ManagedClusters, WantedCluster } from '../../providers/cloud.ts';
import { gcpClusters } from '../../providers/gcp/index.ts';
import { PulumiRunner } from '../../providers/pulumi/runner.ts';
import { type CloudName, type FakeCloud, fakeCloud } from '../kit/cloud/index.ts';

interface Place {
  region: string;
  zones: string[];
  machineType: string;
}

const PLACES: Readonly<Record<CloudName, Place>> = {
  aws: { region: 'eu-central-1', zones: ['eu-central-1a', 'eu-central-1b'], machineType: 'm7i.large' },
  gcp: { region: 'europe-west3', zones: ['europe-west3-a', 'europe-west3-b'], machineType: 'e2-standard-4' },
  'azure-native': { region: 'germanywestcentral', zones: ['1', '2'], machineType: 'Standard_D4s_v5' },
};

/** A managed cluster of one pool in two zones. */
export function wantedCluster(cloud: CloudName, nodes: number): WantedCluster {
  const { region, zones, machineType } = PLACES[cloud];
  const pool = {
    name: 'workers',
    machineType,
    minimum: 1,
    maximum: 3,
    desired: nodes,
    spot: false,
    gpu: 0,
    architecture: 'amd64' as const,
    labels: {},
    taints: [],
    zones: [],
  };
  return {
    region,
    zones,
    kubernetesVersion: '1.35',
    cidrs: { nodes: '10.0.0.0/16', pods: '10.64.0.0/14', services: '10.128.0.0/20' },
    pools: [pool],
    authorizedNetworks: [],
  };
}

/** The test kit's clouds without latency, and our providers with the real engine on them. */
export class CloudRig {
  readonly runner: PulumiRunner;
  readonly #dir: string;
  readonly #cloud: FakeCloud;
  readonly #providers: Readonly<Record<CloudName, ManagedClusters>>;

  private constructor(dir: string, cloud: FakeCloud, runner: PulumiRunner, web: Awaited<ReturnType<FakeCloud['web']>>) {
    this.#dir = dir;
    this.#cloud = cloud;
    this.runner = runner;
    this.#providers = {
      aws: awsClusters(runner, web.aws),
      gcp: gcpClusters(runner, web.gcp),
      'azure-native': azureClusters(runner, web.azure),
    };
  }

  /** @param atOnce operations at one time */
  static async open(engine: string, atOnce: number): Promise<CloudRig> {
    const dir = await mkdtemp(join(tmpdir(), 'coppice-bench-clouds-'));
    const cloud = await fakeCloud({ dir: join(dir, 'cloud') });
    const runner = new PulumiRunner({
      engine: async () => engine,
      home: join(dir, 'home'),
      log: silent,
      acquirePlugins: false,
      plugins: cloud.pluginFolders,
      maxWorkers: atOnce,
      maxPerAccountAndRegion: atOnce,
    });
    await mkdir(join(dir, 'state'), { mode: 0o700 });
    return new CloudRig(dir, cloud, runner, await cloud.web());
  }

  provider(cloud: CloudName): ManagedClusters {
    return this.#providers[cloud];
  }

  /** What a call for a cluster of that name is made with. */
  context(cloud: CloudName, name: string, signal: AbortSignal): CloudContext {
    return {
      owner: { technicalID: `bench--${name}`, uid: `6d0b7c1e-${name}`, name, namespace: 'bench' },
      account: this.#cloud.account(cloud),
      region: PLACES[cloud].region,
      profile: { metadata: { name: cloud }, spec: {} } as unknown as CloudProfile,
      state: { url: pathToFileURL(join(this.#dir, 'state')).href, passphrase: 'a phrase for the bench', env: {} },
      log: silent,
      signal,
      now: () => new Date(),
    };
  }

  async close(): Promise<void> {
    await this.runner.close(5_000);
    await this.#cloud.close();
    await rm(this.#dir, { recursive: true, force: true });
  }
}
