import { join } from 'node:path';
import { expect } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { API_VERSION } from '../../../operator/api/group.ts';
import { networkNames } from '../../../operator/garden/network.ts';
import { StateDirectory } from '../../../operator/garden/state.ts';
import { CLOUDPROFILES, NAMESPACES, SECRETS, SEEDS } from '../../../operator/kube/resources.ts';
import { type Account, type FakeCloud, fakeCloud, type WebEndpoints } from '../cloud/index.ts';
import { garden, gardenClient, kubectl, ok } from '../garden.ts';
import { loadBalancers } from '../load-balancers.ts';
import { type RealMachines, realMachines } from './real-machines.ts';
import type { MachinesCloud } from './surroundings.ts';

const AWS_SERVICES = ['sts', 'iam', 'ec2', 'eks', 'kms', 'autoscaling', 'tagging'];
const ENDPOINTS: Record<MachinesCloud, (web: WebEndpoints) => Record<string, string>> = {
  aws: ({ aws }) => Object.fromEntries(AWS_SERVICES.map((service) => [service, aws(service, '')])),
  gcp: ({ gcp }) => gcp,
};

/** What a hosted cluster with machines in a cloud needs. */
export interface HostedScene {
  cloud: FakeCloud;
  account: Account;
  machines: RealMachines;
  /** Network namespace of the garden's seed. */
  seedNetwork: string;
}

export const apply = async (...objects: object[]): Promise<string> =>
  ok(await kubectl(['apply', '-f', '-'], { input: objects.map((one) => JSON.stringify(one)).join('\n---\n') }));

/**
 * A fake cloud whose machines boot, the garden once more as a seed that they reach, and a namespace with Secret `keys` of an account.
 * The profile is called as the cloud is.
 * @param atEnd gets what takes all of it away, to be done from the last to the first
 */
export async function hostedScene(
  atEnd: (() => Promise<unknown>)[],
  { name, region, namespace }: { name: MachinesCloud; region: string; namespace: string },
): Promise<HostedScene> {
  const cloud = await fakeCloud();
  atEnd.push(() => cloud.close());
  const account = cloud.account(name);
  await cloud.installInto(join(garden.home, 'clouds', 'pulumi-home'));
  const tell = (value: object | null) =>
    gardenClient().mergePatch<CloudProfile>(CLOUDPROFILES, name, undefined, { spec: { providerConfig: value } });
  await tell({ endpoints: ENDPOINTS[name](await cloud.web()) });
  atEnd.push(() => tell(null));
  const balancers = await loadBalancers(gardenClient());
  atEnd.push(() => balancers.close());
  const seedNetwork = networkNames(new StateDirectory(garden.home).id).namespace;
  const machines = await realMachines(cloud, { account, region, seed: seedNetwork });
  atEnd.push(async () => expect(await machines.close(), 'what is left of the machines').toEqual([]));

  const { spec } = await gardenClient().get(SEEDS, 'local');
  // A name of its own: that of another scene may still be on its way out.
  const metadata = { name: `reachable-from-${name}`, namespace: 'coppice-system' };
  const kubeconfig = ok(await kubectl(['config', 'view', '--raw', '--flatten']));
  await apply(
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: metadata.namespace } },
    { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    { apiVersion: 'v1', kind: 'Secret', metadata, data: { value: Buffer.from(kubeconfig).toString('base64') } },
    {
      apiVersion: API_VERSION,
      kind: 'Seed',
      metadata: { name: metadata.name },
      spec: { ...spec, kubeconfigRef: metadata, exposure: { type: 'LoadBalancer' } },
    },
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'keys', namespace }, stringData: account.credentials },
  );
  atEnd.push(async () => {
    await gardenClient().delete(SEEDS, metadata.name);
    await gardenClient().delete(SECRETS, metadata.name, metadata.namespace);
    await gardenClient().delete(NAMESPACES, namespace);
  });
  return { cloud, account, machines, seedNetwork };
}
