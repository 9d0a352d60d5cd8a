import { isIP } from 'node:net';
import {
  type CertificateRequest,
  certificateMatches,
  createCA,
  isPair,
  issue,
  issuedBy,
  type KeyPair,
  LEAF_DAYS,
  needsRenewal,
  newServiceAccountKey,
  publicKeyOf,
  renewalTime,
  renewCA,
} from '../pki/certificates.ts';
import { CLUSTER_DOMAIN, type ControlPlane, kubernetesServiceAddress } from './values.ts';

/** Secret in the seed that holds every key and certificate of a shoot; all others are made from it. */
export const PKI_SECRET = 'pki';
/** Members of this group administer the cluster; bound to `cluster-admin` by systemComponents. */
export const ADMIN_GROUP = 'coppice:admins';
/** Members of this group read all of the cluster but Secrets; bound by systemComponents. */
export const VIEWER_GROUP = 'coppice:viewers';

/** Who the API server is to kubelets; bound to `system:kubelet-api-admin` by kubeletAccess. The name is kubeadm's. */
export const KUBELET_CLIENT_USER = 'kube-apiserver-kubelet-client';

/** Who the server of the tunnel to machines is, at the API server that it stands beside: may have tokens of agents reviewed, and nothing else. */
export const KONNECTIVITY_SERVER_USER = 'system:konnectivity-server';

/** As API servers call metrics-server. */
const METRICS_SERVER_HOST = 'coppice-metrics-server.kube-system.svc';

/** Files of the Secret: `<id>.crt` and `<id>.key` for each certificate, `sa.pub` and `sa.key`. */
export type PKIData = Record<string, string>;

/** What the certificates depend on. */
export interface PKIParameters {
  apiServerAddress: string;
  /** By ordinal. */
  etcdAddresses: string[];
  services: string;
  /** Name or address under which the API server is reached from outside of the seed. */
  endpointHost?: string | undefined;
  /** Further names of the API server. */
  hostNames?: readonly string[] | undefined;
  /** Machines are outside of the seed: the tunnel to them has a server. */
  machinesOutside?: boolean | undefined;
  /** metrics-server is asked for, which serves by TLS. */
  metricsServer?: boolean;
  /** The control plane is on machines, which make their own certificates: only people and machines for workloads need some of ours. */
  selfHosted?: boolean;
  /** API servers call kubelets with rights of system:masters, as earlier versions had it, until the cluster is known to have kubeletAccess. */
  kubeletsAsMaster?: boolean;
}

/** Why a certificate is made (again). */
type IssueReason = 'missing' | 'damaged' | 'expiring' | 'changed' | 'authority';

/** What to make, authorities first, and when to look again. */
interface PKIPlan {
  issue: { id: string; reason: IssueReason }[];
  /** The earliest renewal among what stays as it is; undefined when nothing stays. */
  nextRenewal?: Date;
}

type Authority = 'ca' | 'ca-etcd' | 'ca-front-proxy';
const AUTHORITIES: Authority[] = ['ca', 'ca-etcd', 'ca-front-proxy'];
const SERVICE_ACCOUNT = 'sa';

const CA_DAYS = 3650;
/**
 * The certificate in the Secret `<name>-kubeconfig`, which nobody can revoke: whoever took it has it for a week at most. It is replaced each
 * day, so that readers have six to take the new one, and the operator six to come back.
 */
const ADMIN_DAYS = 7;
const ADMIN_RENEWED_AFTER_DAYS = 1;

interface Leaf {
  ca: Authority;
  days: number;
  /** Age at which it is renewed. Absent: 80 % of its life, or 48 days. */
  renewedAfterDays?: number;
  request: CertificateRequest;
}

/** The parameters that follow from the values of a control plane. */
export const pkiParameters = (
  values: Pick<ControlPlane, 'addresses' | 'networks' | 'endpoint' | 'hostNames' | 'machinesOutside'>,
): PKIParameters => ({
  apiServerAddress: values.addresses.apiServer,
  etcdAddresses: values.addresses.etcd,
  services: values.networks.services,
  endpointHost: values.endpoint?.host,
  hostNames: values.hostNames,
  machinesOutside: values.machinesOutside,
});

/** Which of a shoot's certificates must be made or renewed. A renewed authority keeps its key, so nothing else follows. */
export function planShootPKI(existing: PKIData, parameters: PKIParameters, now: Date): PKIPlan {
  const plan: PKIPlan = { issue: [] };
  const keep = (cert: string, afterDays?: number) => {
    const time = renewalTime(cert, afterDays);
    if (!plan.nextRenewal || time < plan.nextRenewal) plan.nextRenewal = time;
  };
  const replaced = new Set<Authority>();
  for (const id of AUTHORITIES) {
    const reason = reasonToIssue(pairOf(existing, id), now);
    if (reason) plan.issue.push({ id, reason });
    else keep(existing[`${id}.crt`]!);
    if (reason && reason !== 'expiring') replaced.add(id);
  }
  for (const [id, leaf] of Object.entries(leaves(parameters))) {
    const pair = pairOf(existing, id);
    let reason = reasonToIssue(pair, now, leaf.renewedAfterDays);
    if (!reason && replaced.has(leaf.ca)) reason = 'authority';
    if (!reason && !issuedBy(pair.cert!, existing[`${leaf.ca}.crt`]!)) reason = 'authority';
    if (!reason && !certificateMatches(pair.cert!, leaf.request)) reason = 'changed';
    if (reason) plan.issue.push({ id, reason });
    else keep(pair.cert!, leaf.renewedAfterDays);
  }
  const tokens = publicKeyOf(existing[`${SERVICE_ACCOUNT}.key`]);
  if (tokens === undefined || tokens.trim() !== existing[`${SERVICE_ACCOUNT}.pub`]?.trim())
    plan.issue.push({ id: SERVICE_ACCOUNT, reason: tokens === undefined ? 'missing' : 'damaged' });
  return plan;
}

/** Carries a plan out: everything that exists, with what the plan names made anew. */
export async function issueShootPKI(
  existing: PKIData,
  plan: PKIPlan,
  parameters: PKIParameters,
  now: Date,
): Promise<PKIData> {
  const data = { ...existing };
  const put = (id: string, pair: KeyPair) => {
    data[`${id}.crt`] = pair.cert;
    data[`${id}.key`] = pair.key;
  };
  const reasons = new Map(plan.issue.map((item) => [item.id, item.reason]));
  await Promise.all(
    AUTHORITIES.filter((id) => reasons.has(id)).map(async (id) => {
      const old = pairOf(existing, id);
      const renew = reasons.get(id) === 'expiring' && isPair(old);
      put(
        id,
        renew ? await renewCA(old, { days: CA_DAYS, now }) : await createCA({ commonName: id, days: CA_DAYS, now }),
      );
    }),
  );
  const due = Object.entries(leaves(parameters)).filter(([id]) => reasons.has(id));
  await Promise.all(
    due.map(async ([id, leaf]) => {
      const ca = { cert: data[`${leaf.ca}.crt`]!, key: data[`${leaf.ca}.key`]! };
      put(id, await issue(ca, { ...leaf.request, days: leaf.days, now }));
    }),
  );
  if (reasons.has(SERVICE_ACCOUNT)) {
    // Of a key that is there the other half follows.
    const known = publicKeyOf(existing[`${SERVICE_ACCOUNT}.key`]);
    const keys = known === undefined ? await newServiceAccountKey() : undefined;
    if (keys) data[`${SERVICE_ACCOUNT}.key`] = keys.private;
    data[`${SERVICE_ACCOUNT}.pub`] = known ?? keys!.public;
  }
  return data;
}

/**
 * Ids of the keys that no new ones can replace, and that are missing or damaged: the authorities, and the key of ServiceAccount tokens. What
 * a lost key has signed nobody would trust any more. Pure.
 */
export const lostKeys = (data: PKIData): string[] => [
  ...AUTHORITIES.filter((id) => !isPair(pairOf(data, id))),
  ...(publicKeyOf(data[`${SERVICE_ACCOUNT}.key`]) === undefined ? [SERVICE_ACCOUNT] : []),
];

/** Ids of such keys that are others than they were. Certificates of authorities may be renewed; their keys never change. Pure. */
export const replacedKeys = (data: PKIData, before: PKIData): string[] =>
  [...AUTHORITIES, SERVICE_ACCOUNT].filter((id) => data[`${id}.key`] !== before[`${id}.key`]);

/** `data` with everything that it lacks, and with the lost keys, as they are in `kept`. Pure. */
export function withKept(data: PKIData, kept: PKIData, lost: readonly string[]): PKIData {
  const isLost = (file: string) => lost.some((id) => file === id || file.startsWith(`${id}.`));
  return { ...kept, ...Object.fromEntries(Object.entries(data).filter(([file]) => !isLost(file))) };
}

/** Whether its API servers call kubelets with a certificate of an earlier version: nobody can take its rights back. */
export function callsKubeletsAsMaster(data: PKIData): boolean {
  const cert = data['kubelet-client.crt'];
  return cert !== undefined && certificateMatches(cert, kubeletClient({ kubeletsAsMaster: true }));
}

/** Certificate and key `id` of the shoot. Throws when the plan was not carried out before. */
export function keyPair(data: PKIData, id: string): KeyPair {
  const pair = pairOf(data, id);
  if (!pair.cert || !pair.key) throw new Error(`the shoot's Secret ${PKI_SECRET} has no certificate ${id}`);
  return { cert: pair.cert, key: pair.key };
}

/** A short-lived certificate with which the operator itself reaches the shoot; kept in memory, never stored. */
export const issueOperatorCertificate = (data: PKIData, now: Date, days = 1): Promise<KeyPair> =>
  issue(keyPair(data, 'ca'), {
    commonName: 'coppice:operator',
    organizations: ['system:masters'],
    usages: ['client'],
    days,
    now,
  });

/** A short-lived certificate with which the operator itself reaches the shoot's etcd. */
export const issueEtcdOperatorCertificate = (data: PKIData, now: Date, days = 1): Promise<KeyPair> =>
  issue(keyPair(data, 'ca-etcd'), { commonName: 'coppice:operator', usages: ['client'], days, now });

function leaves(parameters: PKIParameters): Record<string, Leaf> {
  const { apiServerAddress, etcdAddresses, services, endpointHost = '', hostNames = [] } = parameters;
  const isAddress = isIP(endpointHost) !== 0;
  const client = (commonName: string, organizations: string[] = []): Leaf => ({
    ca: 'ca',
    days: LEAF_DAYS,
    request: { commonName, organizations, usages: ['client'] },
  });
  // Without a certificate of their own they would make themselves one at each start, with RSA keys that cost CPU.
  const serving = (commonName: string): Leaf => ({
    ca: 'ca',
    days: LEAF_DAYS,
    request: { commonName, dnsNames: [commonName, 'localhost'], ipAddresses: ['127.0.0.1'], usages: ['server'] },
  });
  const forAll = {
    'kube-proxy': client('system:kube-proxy'),
    admin: {
      ...client('coppice:admin', [ADMIN_GROUP]),
      days: ADMIN_DAYS,
      renewedAfterDays: ADMIN_RENEWED_AFTER_DAYS,
    },
    ...(parameters.metricsServer && {
      'metrics-server': {
        ca: 'ca',
        days: LEAF_DAYS,
        request: { commonName: METRICS_SERVER_HOST, dnsNames: [METRICS_SERVER_HOST], usages: ['server'] },
      } satisfies Leaf,
    }),
  };
  if (parameters.selfHosted) return forAll;
  return {
    // One certificate for both of a member's roles; 'client' is for peers and for the member's own JSON gateway.
    etcd: {
      ca: 'ca-etcd',
      days: LEAF_DAYS,
      request: {
        commonName: 'etcd',
        dnsNames: ['localhost'],
        ipAddresses: ['127.0.0.1', ...etcdAddresses],
        usages: ['server', 'client'],
      },
    },
    'etcd-client': {
      ca: 'ca-etcd',
      days: LEAF_DAYS,
      request: { commonName: 'kube-apiserver', usages: ['client'] },
    },
    'kube-apiserver': {
      ca: 'ca',
      days: LEAF_DAYS,
      request: {
        commonName: 'kube-apiserver',
        dnsNames: [
          'kubernetes',
          'kubernetes.default',
          'kubernetes.default.svc',
          `kubernetes.default.svc.${CLUSTER_DOMAIN}`,
          'localhost',
          ...(endpointHost && !isAddress ? [endpointHost] : []),
          ...hostNames,
        ],
        ipAddresses: [
          apiServerAddress,
          kubernetesServiceAddress(services),
          '127.0.0.1',
          ...(isAddress ? [endpointHost] : []),
        ],
        usages: ['server'],
      },
    },
    'kubelet-client': { ca: 'ca', days: LEAF_DAYS, request: kubeletClient(parameters) },
    'front-proxy-client': {
      ca: 'ca-front-proxy',
      days: LEAF_DAYS,
      request: { commonName: 'front-proxy-client', usages: ['client'] },
    },
    'kube-controller-manager': client('system:kube-controller-manager'),
    'kube-controller-manager-serving': serving('kube-controller-manager'),
    'kube-scheduler': client('system:kube-scheduler'),
    'kube-scheduler-serving': serving('kube-scheduler'),
    // One certificate for both of its roles: agents connect to it at the endpoint, and it has the API server review their tokens.
    ...(parameters.machinesOutside &&
      isAddress && {
        'konnectivity-server': {
          ca: 'ca',
          days: LEAF_DAYS,
          request: {
            commonName: KONNECTIVITY_SERVER_USER,
            ipAddresses: [endpointHost],
            usages: ['server', 'client'],
          },
        } satisfies Leaf,
      }),
    ...forAll,
  };
}

const kubeletClient = ({ kubeletsAsMaster }: Pick<PKIParameters, 'kubeletsAsMaster'>): CertificateRequest => ({
  commonName: KUBELET_CLIENT_USER,
  organizations: kubeletsAsMaster ? ['system:masters'] : [],
  usages: ['client'],
});

function reasonToIssue(pair: Partial<KeyPair>, now: Date, afterDays?: number): IssueReason | undefined {
  if (!pair.cert || !pair.key) return 'missing';
  if (!isPair(pair)) return 'damaged';
  return needsRenewal(pair.cert, now, afterDays) ? 'expiring' : undefined;
}

function pairOf(data: PKIData, id: string): Partial<KeyPair> {
  return { cert: data[`${id}.crt`], key: data[`${id}.key`] };
}
