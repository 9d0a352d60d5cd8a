import { join } from 'node:path';
import { expect } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { API_VERSION } from '../../../operator/api/group.ts';
import { technicalID } from '../../../operator/api/names.ts';
import { run } from '../../../operator/garden/host/command.ts';
import { networkNames } from '../../../operator/garden/host/network.ts';
import { StateDirectory } from '../../../operator/garden/state/state.ts';
import { CLOUDPROFILES, NAMESPACES, SECRETS, SEEDS } from '../../../operator/kube/resources.ts';
import { type Account, type FakeCloud, fakeCloud, type WebEndpoints } from '../cloud/index.ts';
import { garden, gardenClient, kubectl, type Name, ok } from '../garden.ts';
import { loadBalancers } from '../load-balancers.ts';
import { type RealMachines, realMachines } from './real-machines.ts';
import type { MachinesCloud } from './surroundings.ts';

const AWS_SERVICES = ['sts', 'iam', 'ec2', 'eks', 'kms', 'autoscaling', 'elasticloadbalancing', 'tagging'];
const ENDPOINTS: Record<MachinesCloud, (web: WebEndpoints) => Record<string, string>> = {
  aws: ({ aws }) => Object.fromEntries(AWS_SERVICES.map((service) => [service, aws(service, '')])),
  gcp: ({ gcp }) => gcp,
};

/** A fake cloud whose machines boot. */
export interface CloudTestbed {
  cloud: FakeCloud;
  account: Account;
  machines: RealMachines;
  /** Network namespace of the garden's seed. */
  seedNetwork: string;
}

interface SceneOptions {
  name: MachinesCloud;
  region: string;
  namespace: string;
}

/** What takes all of a testbed away, to be done from the last to the first. */
type AtEnd = (() => Promise<unknown>)[];

export const apply = async (...objects: object[]): Promise<string> =>
  ok(await kubectl(['apply', '-f', '-'], { input: objects.map((one) => JSON.stringify(one)).join('\n---\n') }));

/**
 * A fake cloud whose machines boot, its profile, which is called as the cloud is, and a namespace with Secret `keys` of an account.
 * @param balanced see realMachines
 */
async function cloudTestbed(
  atEnd: AtEnd,
  { name, region, namespace, balanced }: SceneOptions & { balanced?: number },
): Promise<CloudTestbed> {
  const cloud = await fakeCloud();
  atEnd.push(() => cloud.close());
  const account = cloud.account(name);
  await cloud.installInto(join(garden.home, 'clouds', 'pulumi-home'));
  const tell = (value: object | null) =>
    gardenClient().mergePatch<CloudProfile>(CLOUDPROFILES, name, undefined, { spec: { providerConfig: value } });
  await tell({ endpoints: ENDPOINTS[name](await cloud.web()) });
  atEnd.push(() => tell(null));
  const seedNetwork = networkNames(new StateDirectory(garden.home).id).namespace;
  const machines = await realMachines(cloud, { account, region, seed: seedNetwork, ...(balanced && { balanced }) });
  atEnd.push(async () => expect(await machines.close(), 'what is left of the machines').toEqual([]));
  await apply(
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'keys', namespace }, stringData: account.credentials },
  );
  atEnd.push(() => gardenClient().delete(NAMESPACES, namespace));
  return { cloud, account, machines, seedNetwork };
}

/** What a hosted cluster with machines in a cloud needs: such a cloud, and the garden once more, as a seed that its machines reach. */
export async function hostedTestbed(atEnd: AtEnd, options: SceneOptions): Promise<CloudTestbed> {
  const balancers = await loadBalancers(gardenClient());
  atEnd.push(() => balancers.close());
  const testbed = await cloudTestbed(atEnd, options);
  const { spec } = await gardenClient().get(SEEDS, 'local');
  // A name of its own: that of another testbed may still be on its way out.
  const metadata = { name: `reachable-from-${options.name}`, namespace: 'coppice-system' };
  const kubeconfig = ok(await kubectl(['config', 'view', '--raw', '--flatten']));
  await apply(
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: metadata.namespace } },
    { apiVersion: 'v1', kind: 'Secret', metadata, data: { value: Buffer.from(kubeconfig).toString('base64') } },
    {
      apiVersion: API_VERSION,
      kind: 'Seed',
      metadata: { name: metadata.name },
      spec: {
        ...spec,
        // Another region: clusters of local machines, of files that run at the same time, stay where they are at home.
        provider: { ...spec.provider, region: metadata.name },
        kubeconfigRef: metadata,
        exposure: { type: 'LoadBalancer' },
      },
    },
  );
  atEnd.push(async () => {
    await gardenClient().delete(SEEDS, metadata.name);
    await gardenClient().delete(SECRETS, metadata.name, metadata.namespace);
  });
  return testbed;
}

/** The port of API servers on machines. */
const PORT = 6443;

/**
 * What a cluster with a control plane of its own in a cloud needs: such a cloud, and a load balancer before the control plane, at one address
 * for machines, the operator and people.
 */
export async function selfManagedTestbed(
  atEnd: AtEnd,
  { cluster, ...options }: Omit<SceneOptions, 'namespace'> & { cluster: Name },
): Promise<CloudTestbed & { endpoint: string }> {
  const testbed = await cloudTestbed(atEnd, { ...options, namespace: cluster.namespace, balanced: PORT });
  const { outside } = testbed.machines.network;
  const { link } = networkNames(new StateDirectory(garden.home).id);
  const uplink = await run(['ip', '-n', testbed.seedNetwork, '-4', '-o', 'addr', 'show', 'dev', 'uplink']);
  const way = / inet ([\d.]+)\//.exec(uplink)![1]!;
  await run(['ip', 'route', 'replace', `${outside}/32`, 'via', way, 'dev', link]);
  atEnd.push(() => run(['ip', 'route', 'delete', `${outside}/32`, 'dev', link]));
  const endpoint = `https://${outside}:${PORT}`;
  // What has the address is a load balancer at AWS, and at Google an address.
  const named = technicalID(cluster.namespace, cluster.name);
  for (const name of [named, `${named}-endpoint`])
    testbed.cloud.setEndpoint(name, { endpoint, certificateAuthority: '' });
  return { ...testbed, endpoint };
}
