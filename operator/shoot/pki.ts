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

/** Secret in the seed with every key and certificate of a shoot; all others are derived from it. */
export const PKI_SECRET = 'pki';
/** Group of cluster administrators; bound to `cluster-admin` by systemComponents. */
export const ADMIN_GROUP = 'coppice:admins';
/** Group with read access to everything but Secrets; bound by systemComponents. */
export const VIEWER_GROUP = 'coppice:viewers';

/**
 * The API server's user name towards kubelets; bound to `system:kubelet-api-admin` by kubeletAccess. The name is
 * kubeadm's.
 */
export const KUBELET_CLIENT_USER = 'kube-apiserver-kubelet-client';

/** User name of the tunnel's server at the API server beside it; its only right is the review of agents' tokens. */
export const KONNECTIVITY_SERVER_USER = 'system:konnectivity-server';

/** metrics-server's host name for API servers. */
const METRICS_SERVER_HOST = 'coppice-metrics-server.kube-system.svc';

/** Files of the Secret: `<id>.crt` and `<id>.key` for each certificate, `sa.pub` and `sa.key`. */
export type PKIData = Record<string, string>;

/** Parameters of the certificates. */
export interface PKIParameters {
  apiServerAddress: string;
  /** By ordinal. */
  etcdAddresses: string[];
  services: string;
  /** Name or address of the API server from outside the seed. */
  endpointHost?: string | undefined;
  /** Further names of the API server. */
  hostNames?: readonly string[] | undefined;
  /** Whether machines are outside the seed, so that the tunnel has a server. */
  machinesOutside?: boolean | undefined;
  /** Whether metrics-server, which serves TLS, is enabled. */
  metricsServer?: boolean;
  /**
   * Whether the control plane runs on machines, which issue their own certificates: only people and worker machines
   * need some of Coppice's.
   */
  selfHosted?: boolean;
  /**
   * Whether API servers call kubelets as system:masters, as in earlier versions, until the cluster is known to have
   * kubeletAccess.
   */
  kubeletsAsMaster?: boolean;
}

/** Why a certificate is issued (again). */
type IssueReason = 'missing' | 'damaged' | 'expiring' | 'changed' | 'authority';

/** Certificates to issue, CAs first, and the time of the next check. */
interface PKIPlan {
  issue: { id: string; reason: IssueReason }[];
  /** The earliest renewal of the unchanged certificates; undefined when all are issued. */
  nextRenewal?: Date;
}

type Authority = 'ca' | 'ca-etcd' | 'ca-front-proxy';
const AUTHORITIES: Authority[] = ['ca', 'ca-etcd', 'ca-front-proxy'];
const SERVICE_ACCOUNT = 'sa';

const CA_DAYS = 3650;
/**
 * Validity of the certificate in the Secret `<name>-kubeconfig`, which cannot be revoked: a stolen one works for a week
 * at most. It is renewed daily, so that readers and the operator have six days of slack.
 */
const ADMIN_DAYS = 7;
const ADMIN_RENEWED_AFTER_DAYS = 1;

interface Leaf {
  ca: Authority;
  days: number;
  /** Age of its renewal. Absent: 80 % of its life, or 48 days. */
  renewedAfterDays?: number;
  request: CertificateRequest;
}

/** PKI parameters of a control plane's values. */
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

/** Certificates of a shoot to issue or renew. A renewed CA keeps its key, so the certificates it signed stay valid. */
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

/** Applies a plan: the existing files, with those of the plan issued anew. */
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
    // The public half follows from an existing private key.
    const known = publicKeyOf(existing[`${SERVICE_ACCOUNT}.key`]);
    const keys = known === undefined ? await newServiceAccountKey() : undefined;
    if (keys) data[`${SERVICE_ACCOUNT}.key`] = keys.private;
    data[`${SERVICE_ACCOUNT}.pub`] = known ?? keys!.public;
  }
  return data;
}

/**
 * Ids of irreplaceable keys that are missing or damaged: those of the CAs, and of ServiceAccount tokens. Nothing signed
 * with a lost key would be trusted any more. Pure.
 */
export const lostKeys = (data: PKIData): string[] => [
  ...AUTHORITIES.filter((id) => !isPair(pairOf(data, id))),
  ...(publicKeyOf(data[`${SERVICE_ACCOUNT}.key`]) === undefined ? [SERVICE_ACCOUNT] : []),
];

/** Ids of irreplaceable keys that changed. CA certificates may be renewed; their keys never change. Pure. */
export const replacedKeys = (data: PKIData, before: PKIData): string[] =>
  [...AUTHORITIES, SERVICE_ACCOUNT].filter((id) => data[`${id}.key`] !== before[`${id}.key`]);

/** `data` completed from `kept`: missing files, and the lost keys. Pure. */
export function withKept(data: PKIData, kept: PKIData, lost: readonly string[]): PKIData {
  const isLost = (file: string) => lost.some((id) => file === id || file.startsWith(`${id}.`));
  return { ...kept, ...Object.fromEntries(Object.entries(data).filter(([file]) => !isLost(file))) };
}

/** Whether its API servers call kubelets with a certificate of an earlier version, whose rights cannot be revoked. */
export function callsKubeletsAsMaster(data: PKIData): boolean {
  const cert = data['kubelet-client.crt'];
  return cert !== undefined && certificateMatches(cert, kubeletClient({ kubeletsAsMaster: true }));
}

/** Certificate and key `id` of the shoot. Throws when they were not issued before. */
export function keyPair(data: PKIData, id: string): KeyPair {
  const pair = pairOf(data, id);
  if (!pair.cert || !pair.key) throw new Error(`the shoot's Secret ${PKI_SECRET} has no certificate ${id}`);
  return { cert: pair.cert, key: pair.key };
}

/** A short-lived client certificate of the operator for the shoot; kept in memory, never stored. */
export const issueOperatorCertificate = (data: PKIData, now: Date, days = 1): Promise<KeyPair> =>
  issue(keyPair(data, 'ca'), {
    commonName: 'coppice:operator',
    organizations: ['system:masters'],
    usages: ['client'],
    days,
    now,
  });

/** A short-lived client certificate of the operator for the shoot's etcd. */
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
  // Without a given certificate they would generate one at each start, with RSA keys that cost CPU.
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
    // One certificate for both roles of a member; 'client' is for peers and for the member's own JSON gateway.
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
    // One certificate for both of its roles: agents connect to it at the endpoint, and it has agents' tokens
    // reviewed by the API server.
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
