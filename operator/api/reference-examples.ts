/** Example YAML of a kind, minimal and usual. Both pass a server-side dry run (test/integration/api/docs.test.ts). */
interface Examples {
  readonly minimal: string;
  readonly usual: string;
}

const V1 = 'multi-cluster.demo.io/v1';
const ALPHA = 'multi-cluster.demo.io/v1alpha1';

export const EXAMPLES: Readonly<Record<string, Examples>> = {
  WorkerCluster: {
    minimal: `apiVersion: ${V1}
kind: WorkerCluster
metadata: {name: demo}
spec: {cloudProvider: local, controlPlaneNodes: 1, dataPlaneNodes: 2}`,
    usual: `apiVersion: ${V1}
kind: WorkerCluster
metadata:
  name: shop
  labels: {fleet: production}
spec:
  cloudProvider: aws
  region: eu-central-1
  mode: Managed
  credentialsRef: {kind: CredentialsBinding, name: aws}
  kubernetes: {version: "1.36"}
  pools:
    - {name: web, machineType: m5.large, minimum: 2, maximum: 10, autoscale: Coppice}
    - {name: batch, machineType: m5.xlarge, minimum: 0, maximum: 20, autoscale: Coppice, spot: true}
  ttl: 720h
  deletionProtection: true`,
  },
  Shoot: {
    minimal: `apiVersion: ${V1}
kind: Shoot
metadata: {name: demo}
spec:
  cloudProfile: {name: local}
  region: local
  provider: {type: local}`,
    usual: `apiVersion: ${V1}
kind: Shoot
metadata: {name: demo}
spec:
  cloudProfile: {name: local}
  region: local
  provider:
    type: local
    workers:
      - {name: web, machine: {type: local}, minimum: 2, maximum: 2}
  kubernetes: {version: 1.36.3}
  networking: {pods: 100.96.0.0/11, services: 100.64.0.0/13}
  hibernation: {enabled: false}`,
  },
  Seed: {
    minimal: `apiVersion: ${V1}
kind: Seed
metadata: {name: eu}
spec:
  provider: {type: aws, region: eu-central-1}
  networks: {pods: 100.96.0.0/11, services: 100.64.0.0/13}
  kubeconfigRef: {name: eu-kubeconfig, namespace: garden}`,
    usual: `apiVersion: ${V1}
kind: Seed
metadata: {name: eu}
spec:
  provider: {type: aws, region: eu-central-1}
  networks: {nodes: 10.250.0.0/16, pods: 100.96.0.0/11, services: 100.64.0.0/13}
  kubeconfigRef: {name: eu-kubeconfig, namespace: garden}
  exposure: {type: LoadBalancer}
  backup:
    provider: aws
    region: eu-central-1
    credentialsRef: {apiVersion: v1, kind: Secret, name: backups, namespace: garden}
  settings:
    scheduling: {visible: true}`,
  },
  CloudProfile: {
    minimal: `apiVersion: ${V1}
kind: CloudProfile
metadata: {name: mine}
spec:
  type: local
  kubernetes:
    versions: [{version: 1.36.3}]
  machineTypes:
    - {name: local, cpu: "2", gpu: "0", memory: 2Gi}
  regions: [{name: local, zones: [{name: local}]}]`,
    usual: `apiVersion: ${V1}
kind: CloudProfile
metadata: {name: aws-eu}
spec:
  type: aws
  kubernetes:
    versions:
      - {version: 1.36.3, classification: supported}
      - {version: 1.35.4, classification: supported}
  machineTypes:
    - {name: m5.large, cpu: "2", gpu: "0", memory: 8Gi, price: {hourly: "0.115", currency: USD}}
    - {name: m5.xlarge, cpu: "4", gpu: "0", memory: 16Gi, price: {hourly: "0.23", currency: USD}}
  regions:
    - name: eu-central-1
      zones: [{name: eu-central-1a}, {name: eu-central-1b}]
  controlPlaneFee: {hourly: "0.10", currency: USD}
  defaults: {mode: Managed, region: eu-central-1, machineType: m5.large}`,
  },
  CredentialsBinding: {
    minimal: `apiVersion: ${V1}
kind: CredentialsBinding
metadata: {name: aws}
provider: {type: aws}
credentialsRef: {apiVersion: v1, kind: Secret, name: aws-keys}`,
    usual: `apiVersion: ${V1}
kind: CredentialsBinding
metadata:
  name: aws-without-keys
  labels: {team: shop}
provider: {type: aws}
credentialsRef: {apiVersion: ${V1}, kind: WorkloadIdentity, name: aws}`,
  },
  WorkloadIdentity: {
    minimal: `apiVersion: ${V1}
kind: WorkloadIdentity
metadata: {name: aws}
spec:
  targetSystem:
    type: aws
    providerConfig: {roleARN: "arn:aws:iam::123456789012:role/coppice"}`,
    usual: `apiVersion: ${V1}
kind: WorkloadIdentity
metadata: {name: aws}
spec:
  audiences: [sts.amazonaws.com]
  targetSystem:
    type: aws
    providerConfig: {roleARN: "arn:aws:iam::123456789012:role/coppice", region: eu-central-1}`,
  },
  Quota: {
    minimal: `apiVersion: ${V1}
kind: Quota
metadata: {name: team}
spec:
  metrics: {nodes: 20}`,
    usual: `apiVersion: ${V1}
kind: Quota
metadata: {name: team}
spec:
  metrics: {clusters: 5, nodes: 20, gpu: 2, cost.hourly: 10, cost.monthly: 2000}
  currency: USD
  clusterLifetimeDays: 30`,
  },
  Hub: {
    minimal: `apiVersion: ${ALPHA}
kind: Hub
metadata: {name: fleet}
spec:
  type: ClusterProfile
  allowedNamespaces: ["*"]`,
    usual: `apiVersion: ${ALPHA}
kind: Hub
metadata: {name: karmada}
spec:
  type: Karmada
  kubeconfigRef: {name: karmada}
  allowedNamespaces: [shop]
  clusterSelector: {matchLabels: {fleet: production}}
  drain: {timeout: 15m}
  karmada: {renewsTokens: true}`,
  },
  Membership: {
    minimal: `apiVersion: ${ALPHA}
kind: Membership
metadata: {name: demo-fleet}
spec: {cluster: demo, hub: fleet}`,
    usual: `apiVersion: ${ALPHA}
kind: Membership
metadata:
  name: demo-karmada
  annotations: {multi-cluster.demo.io/approve-leave: "true"}
spec: {cluster: demo, hub: karmada}`,
  },
  BurstPolicy: {
    minimal: `apiVersion: ${ALPHA}
kind: BurstPolicy
metadata: {name: peak}
spec:
  hub: fleet
  candidates:
    - name: aws
      template:
        spec:
          cloudProvider: aws
          pools: [{name: workers, maximum: 4}]
  maximumClusters: 1
  budget: {hourly: "1"}`,
    usual: `apiVersion: ${ALPHA}
kind: BurstPolicy
metadata: {name: peak}
spec:
  hub: karmada
  candidates:
    - name: aws
      maximumClusters: 2
      template:
        metadata: {labels: {fleet: production}}
        spec:
          cloudProvider: aws
          region: eu-central-1
          credentialsRef: {name: aws}
          pools: [{name: workers, machineType: m5.large, maximum: 20}]
    - name: gcp
      template:
        metadata: {labels: {fleet: production}}
        spec:
          cloudProvider: gcp
          credentialsRef: {name: gcp}
          pools: [{name: workers, maximum: 20}]
  maximumClusters: 3
  budget: {hourly: "20", monthly: "2000", currency: USD}
  trigger: {pendingFor: 30s}
  scaleIn: {idleFor: 10m, minimumLife: 30m}`,
  },
};

/** Field order on reference pages, by kind and path below spec ('' is spec). Other fields follow in schema order. */
export const FIELD_ORDER: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  WorkerCluster: {
    '': [
      'cloudProvider',
      'dataPlaneNodes',
      'controlPlaneNodes',
      'pools',
      'region',
      'kubernetes',
      'mode',
      'credentialsRef',
      'machineType',
      'ttl',
      'hibernation',
      'addons',
      'zones',
      'deletionProtection',
      'networking',
      'dns',
      'machineTypes',
      'fallback',
      'cloudProfile',
    ],
    pools: ['name', 'machineType', 'minimum', 'maximum', 'autoscale', 'gpu', 'spot', 'zones', 'labels', 'taints'],
  },
  Shoot: {
    '': [
      'cloudProfile',
      'region',
      'provider',
      'kubernetes',
      'networking',
      'controlPlane',
      'hibernation',
      'dns',
      'addons',
    ],
    'provider.workers': ['name', 'machine', 'minimum', 'maximum', 'zones', 'labels', 'taints'],
  },
  Seed: { '': ['kubeconfigRef', 'provider', 'networks', 'exposure', 'backup', 'settings', 'dns', 'taints'] },
  CloudProfile: {
    '': ['type', 'provider', 'kubernetes', 'machineTypes', 'regions', 'defaults', 'controlPlaneFee', 'providerConfig'],
  },
  Quota: { '': ['metrics', 'currency', 'clusterLifetimeDays'] },
  WorkloadIdentity: { '': ['targetSystem', 'audiences'] },
  Hub: {
    '': [
      'type',
      'kubeconfigRef',
      'clusterSelector',
      'allowedNamespaces',
      'drain',
      'clusterProfile',
      'karmada',
      'kueue',
    ],
  },
  BurstPolicy: {
    '': [
      'hub',
      'candidates',
      'maximumClusters',
      'budget',
      'trigger',
      'scaleIn',
      'minimumClusters',
      'maximumNodes',
      'schedule',
      'grow',
      'wake',
      'cooldown',
      'dryRun',
      'suspend',
    ],
    candidates: ['name', 'template', 'priority', 'maximumClusters'],
  },
};
