import { generateKeyPairSync } from 'node:crypto';
import type { CloudProfile } from '../../../../operator/api/cloudprofile.ts';
import { silent } from '../../../../operator/kube/log.ts';
import type {
  CloudContext,
  CloudPool,
  MachinePool,
  MachinesInputs,
  ManagedClusterInputs,
  NetworkInputs,
  Owner,
} from '../../../../providers/cloud.ts';
import type { Answers } from '../../../kit/pulumi-graph.ts';

export const owner: Owner = {
  technicalID: 'shoot--shop--one',
  uid: '2f6c1f0e-8f0a-4b57-9d3e-0d6a5b7c9e11',
  name: 'one',
  namespace: 'shop',
};

/** The labels of everything that is the owner's. */
export const labels = {
  'coppice-technical-id': 'shoot--shop--one',
  'coppice-uid': '2f6c1f0e-8f0a-4b57-9d3e-0d6a5b7c9e11',
  'coppice-cluster': 'one',
  'coppice-namespace': 'shop',
};

const cidrs = { nodes: '10.0.0.0/20', pods: '10.4.0.0/14', services: '10.8.0.0/20' };
const zones = ['europe-west3-a', 'europe-west3-b', 'europe-west3-c'];

export const networkInputs: NetworkInputs = { owner, region: 'europe-west3', zones, cidrs };

export const pool = (changes: Partial<CloudPool> = {}): CloudPool => ({
  name: 'workers',
  machineType: 'e2-standard-4',
  minimum: 0,
  maximum: 10,
  desired: 5,
  spot: false,
  gpu: 0,
  architecture: 'amd64',
  labels: {},
  taints: [],
  zones: [],
  ...changes,
});

export const clusterInputs = (changes: Partial<ManagedClusterInputs> = {}): ManagedClusterInputs => ({
  owner,
  region: 'europe-west3',
  zones,
  kubernetesVersion: '1.36',
  cidrs,
  network: {
    network: 'projects/p/global/networks/n',
    subnets: [{ id: 'projects/p/regions/europe-west3/subnetworks/n-nodes' }],
    extra: { podsRange: 'pods', servicesRange: 'services' },
  },
  pools: [pool()],
  authorizedNetworks: [],
  ...changes,
});

export const machinePool = (changes: Partial<MachinePool> = {}): MachinePool => ({
  ...pool(),
  image: 'projects/debian-cloud/global/images/family/debian-13',
  userData: '#cloud-config\n',
  ...changes,
});

export const machinesInputs = (changes: Partial<MachinesInputs> = {}): MachinesInputs => ({
  owner,
  region: 'europe-west3',
  zones,
  network: clusterInputs().network,
  pools: [machinePool()],
  kubeletClients: [],
  ...changes,
});

/** What Google would answer: outputs that are not inputs. */
export const answers: Answers = {
  call: (token) => (token === 'gcp:organizations/getProject:getProject' ? { projectId: 'demo', number: '1234' } : {}),
  outputs: ({ type, inputs }) => {
    if (type === 'gcp:serviceaccount/account:Account') {
      return { email: `${inputs.accountId}@demo.iam.gserviceaccount.com` };
    }
    if (type === 'gcp:compute/instanceTemplate:InstanceTemplate') {
      return { selfLinkUnique: `global/instanceTemplates/${inputs.name}?uniqueId=7` };
    }
    if (type !== 'gcp:container/cluster:Cluster') return {};
    const clusterCaCertificate = Buffer.from('CERTIFICATE').toString('base64');
    return { endpoint: '203.0.113.7', masterVersion: '1.36.3-gke.1000', masterAuth: { clusterCaCertificate } };
  },
};

const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });

export { publicKey };
export const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

/** A key file as Google gives it. */
export const keyFile = (changes: Record<string, unknown> = {}): string =>
  JSON.stringify({
    type: 'service_account',
    project_id: 'demo-project',
    private_key_id: 'k1',
    private_key: pem,
    client_email: 'coppice@demo-project.iam.gserviceaccount.com',
    client_id: '1',
    token_uri: 'https://oauth2.googleapis.com/token',
    ...changes,
  });

export const profile = {
  apiVersion: 'multi-cluster.demo.io/v1',
  kind: 'CloudProfile',
  metadata: { name: 'gcp' },
  spec: {
    type: 'gcp',
    regions: [{ name: 'europe-west3', zones: zones.map((name) => ({ name })) }],
    machineTypes: [
      { name: 'e2-standard-4', cpu: '4', gpu: '0', memory: '16Gi' },
      { name: 'c4a-standard-4', cpu: '4', gpu: '0', memory: '16Gi', architecture: 'arm64' },
      { name: 'g2-standard-4', cpu: '4', gpu: '1', memory: '16Gi' },
      { name: 'n1-standard-4', cpu: '4', gpu: '1', memory: '15Gi' },
    ],
  },
} as unknown as CloudProfile;

export const now = new Date('2026-11-21T12:00:00.000Z');

export const context = (changes: Partial<CloudContext> = {}): CloudContext => ({
  owner,
  account: { id: 'demo-project', credentials: { 'serviceaccount.json': keyFile() } },
  region: 'europe-west3',
  profile,
  state: { url: 'file:///tmp/state', passphrase: 'x', env: {} },
  log: silent,
  signal: new AbortController().signal,
  now: () => now,
  ...changes,
});

/** The context of an account with this key file. */
export const withKey = (changes: Record<string, unknown>): CloudContext =>
  context({ account: { id: 'demo-project', credentials: { 'serviceaccount.json': keyFile(changes) } } });
