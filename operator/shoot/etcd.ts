import { ANNOTATIONS } from '../api/group.ts';
import type { KubeObject } from '../api/meta.ts';
import { COMPONENTS, etcdMemberName } from '../api/names.ts';
import { keyPair, type PKIData } from './pki.ts';
import { componentSecret, disruptionBudget, filesChecksum, httpProbe, podTemplate, selectorLabels } from './pod.ts';
import {
  type ControlPlane,
  controlPlaneLabels,
  ETCD_CLIENT_PORT,
  ETCD_GATEWAY_PORT,
  ETCD_PEER_PORT,
  etcdClientURL,
  etcdPeerURL,
} from './values.ts';
import { ETCD_IMAGE } from './versions.ts';

/** Claim template of the StatefulSet; member N's claim is `data-etcd-main-N`. */
export const etcdClaimName = (ordinal: number): string => `data-${etcdMemberName(ordinal)}`;

const CONFIG = '/etc/etcd';
const DATA = '/var/lib/etcd';
const METRICS_PORT = 2381;
const QUOTA_BYTES = 2 * 1024 ** 3;
const SLOW_APPLY_NS = 500_000_000;

/** A shoot's etcd: one Secret with certificates and each member's configuration, and a StatefulSet. */
export function etcdManifests(values: ControlPlane, pki: PKIData): KubeObject[] {
  const objects = [etcdSecret(values, pki), etcdStatefulSet(values, pki)];
  if (values.etcd.replicas > 1) objects.push(disruptionBudget(values, COMPONENTS.etcd));
  return objects;
}

/** Certificates, and `etcd-main-N.yaml` for every member with an address. */
export function etcdSecret(values: ControlPlane, pki: PKIData): KubeObject {
  const { cert, key } = keyPair(pki, 'etcd');
  const configs = values.addresses.etcd.map((_, ordinal) => [
    `${etcdMemberName(ordinal)}.yaml`,
    JSON.stringify(etcdConfig(values, ordinal), null, 1),
  ]);
  const secret = componentSecret(values, COMPONENTS.etcd, {
    'ca.crt': keyPair(pki, 'ca-etcd').cert,
    'tls.crt': cert,
    'tls.key': key,
    ...Object.fromEntries(configs),
  });
  // In the same object as the members' configuration that depends on it: one write changes both.
  const { volumes } = values.etcd;
  if (volumes) secret.metadata.annotations = { [ANNOTATIONS.etcdVolumes]: JSON.stringify(volumes) };
  return secret;
}

/** UIDs of the claims with members' data, by ordinal, recorded in etcd's Secret; empty: none recorded yet. */
export function notedVolumes(secret: KubeObject | undefined): Record<number, string> {
  try {
    return (
      (JSON.parse(secret?.metadata.annotations?.[ANNOTATIONS.etcdVolumes] ?? '{}') as Record<number, string>) ?? {}
    );
  } catch {
    return {};
  }
}

/**
 * Initial cluster of a member without data. A recorded volume means that the member had data and voted: it must not
 * return under its old identity without its log. So it is told of the others only, and etcd refuses to start.
 */
function beginsWith({ etcd }: ControlPlane, ordinal: number): number[] {
  const { initialised, replicas, volumes = {} } = etcd;
  const noted = Object.keys(volumes).map(Number);
  if (!initialised || noted.length === 0) {
    return Array.from({ length: initialised ? Math.max(ordinal + 1, replicas) : replicas }, (_, member) => member);
  }
  const others = noted.filter((member) => member !== ordinal);
  return noted.includes(ordinal) && others.length > 0 ? others : [...others, ordinal].sort((a, b) => a - b);
}

/**
 * Configuration file of member `ordinal`. Only a member without data reads the initial cluster: at first all form a
 * cluster together, later each joins the existing members.
 */
export function etcdConfig(values: ControlPlane, ordinal: number): Record<string, unknown> {
  const { initialised } = values.etcd;
  const initialCluster = beginsWith(values, ordinal)
    .filter((member) => member < values.addresses.etcd.length)
    .map((member) => `${etcdMemberName(member)}=${etcdPeerURL(values, member)}`);
  const tls = {
    'cert-file': `${CONFIG}/tls.crt`,
    'key-file': `${CONFIG}/tls.key`,
    'trusted-ca-file': `${CONFIG}/ca.crt`,
    'client-cert-auth': true,
  };
  return {
    name: etcdMemberName(ordinal),
    'data-dir': `${DATA}/data`,
    'listen-client-urls': `https://0.0.0.0:${ETCD_CLIENT_PORT}`,
    // Separate from gRPC, which Go's HTTP server would serve with more CPU, and terminate half a second later.
    'listen-client-http-urls': `https://0.0.0.0:${ETCD_GATEWAY_PORT}`,
    'listen-peer-urls': `https://0.0.0.0:${ETCD_PEER_PORT}`,
    'listen-metrics-urls': `http://0.0.0.0:${METRICS_PORT}`,
    'advertise-client-urls': etcdClientURL(values, ordinal),
    'initial-advertise-peer-urls': etcdPeerURL(values, ordinal),
    'initial-cluster': initialCluster.join(','),
    'initial-cluster-state': initialised ? 'existing' : 'new',
    'initial-cluster-token': values.namespace,
    'client-transport-security': tls,
    // API servers hold certificates of the same CA and must not be able to act as members. Peers connect from
    // changing pod addresses; a common name under a separate CA identifies them.
    'peer-transport-security': { ...tls, 'allowed-cn': ['etcd'], 'skip-client-san-verification': true },
    'quota-backend-bytes': QUOTA_BYTES,
    // The API server compacts every 5 minutes; this is for the time it is down.
    'auto-compaction-mode': 'periodic',
    'auto-compaction-retention': '30m',
    // Keeps far fewer log entries in memory than the default of 10,000; a member that lags more gets a snapshot.
    'snapshot-count': 5000,
    'snapshot-catchup-entries': 1000,
    'warning-apply-duration': SLOW_APPLY_NS,
    'log-level': 'warn',
  };
}

function etcdStatefulSet(values: ControlPlane, pki: PKIData): KubeObject {
  const { storageClassName, storageSize = '2Gi', replicas } = values.etcd;
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: COMPONENTS.etcd, namespace: values.namespace, labels: controlPlaneLabels(values) },
    spec: {
      replicas: replicas,
      serviceName: COMPONENTS.etcd,
      podManagementPolicy: 'Parallel',
      revisionHistoryLimit: 1,
      updateStrategy: { type: 'RollingUpdate' },
      selector: { matchLabels: selectorLabels(COMPONENTS.etcd) },
      template: podTemplate(values, {
        name: COMPONENTS.etcd,
        image: ETCD_IMAGE,
        executable: 'etcd',
        args: [`--config-file=${CONFIG}/$(POD_NAME).yaml`],
        env: [
          { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
          { name: 'GOGC', value: '50' },
        ],
        ports: [
          { name: 'client', containerPort: ETCD_CLIENT_PORT },
          { name: 'peer', containerPort: ETCD_PEER_PORT },
          { name: 'metrics', containerPort: METRICS_PORT },
        ],
        probes: {
          // /livez, because a learner never answers the linearizable read of /readyz.
          startupProbe: httpProbe('/livez', 'metrics', { period: 1, failures: 600 }),
          readinessProbe: httpProbe('/readyz', 'metrics', { period: 5, failures: 3 }),
          livenessProbe: httpProbe('/livez', 'metrics', { period: 10, failures: 6 }),
        },
        mountPath: CONFIG,
        mounts: [{ name: 'data', mountPath: DATA }],
        // Of the CA alone: etcd rereads its own certificate and key for each connection.
        checksum: filesChecksum({ 'ca.crt': keyPair(pki, 'ca-etcd').cert }),
        gracePeriodSeconds: 5,
        spread: replicas > 1,
      }),
      volumeClaimTemplates: [
        {
          apiVersion: 'v1',
          kind: 'PersistentVolumeClaim',
          metadata: { name: 'data', labels: controlPlaneLabels(values) },
          spec: {
            accessModes: ['ReadWriteOnce'],
            ...(storageClassName && { storageClassName }),
            resources: { requests: { storage: storageSize } },
          },
        },
      ],
    },
  };
}
