import { OPERATOR_USER } from '../../api/roles.ts';
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
  renewCA,
} from '../../pki/certificates.ts';
import { writeKubeconfigText } from '../../pki/kubeconfig.ts';
import { readText, writeAtomic, writeIfChanged } from '../host/files.ts';
import type { Ranges } from '../host/ranges.ts';
import type { StateDirectory } from '../state/state.ts';

const CA_DAYS = 3650;

/** Name of the seed's only node. */
export const NODE_NAME = 'seed';

/**
 * Group of an embedded garden's administrators, bound to `cluster-admin`: deleting the binding revokes the rights of
 * all members at once, which is impossible for `system:masters`.
 */
export const GARDEN_ADMINISTRATORS = 'coppice:garden-admins';
/** The API server's user name towards the seed's kubelet. */
export const KUBELET_CLIENT = 'coppice:apiserver-kubelet-client';

/** File name of the image mirror's certificate and key. */
export const IMAGE_MIRROR_CERTIFICATE = 'image-mirror';

/** Users of the garden with a kubeconfig. */
export const USERS = {
  admin: { commonName: 'coppice:admin', organizations: [GARDEN_ADMINISTRATORS] },
  operator: { commonName: OPERATOR_USER, organizations: [] },
  'kube-controller-manager': { commonName: 'system:kube-controller-manager', organizations: [] },
  'kube-scheduler': { commonName: 'system:kube-scheduler', organizations: [] },
  kubelet: { commonName: `system:node:${NODE_NAME}`, organizations: ['system:nodes'] },
  'kube-proxy': { commonName: 'system:kube-proxy', organizations: [] },
} as const;
export type User = keyof typeof USERS;

/** All certificates of the garden, by file name. */
function requests(ranges: Ranges): Record<string, CertificateRequest> {
  const kubernetes = [
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    'kubernetes.default.svc.cluster.local',
  ];
  return {
    etcd: { commonName: 'etcd', dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'], usages: ['server', 'client'] },
    'apiserver-etcd-client': { commonName: 'kube-apiserver', usages: ['client'] },
    apiserver: {
      commonName: 'kube-apiserver',
      dnsNames: ['localhost', ...kubernetes],
      ipAddresses: ['127.0.0.1', ranges.apiserverAddress, ranges.nodeAddress],
      usages: ['server'],
    },
    'apiserver-kubelet-client': { commonName: KUBELET_CLIENT, usages: ['client'] },
    'kubelet-server': {
      commonName: `system:node:${NODE_NAME}`,
      organizations: ['system:nodes'],
      dnsNames: [NODE_NAME],
      ipAddresses: [ranges.nodeAddress],
      usages: ['server'],
    },
    // containerd of the seed and of machines pulls images from it: an impostor at its address must be rejected.
    [IMAGE_MIRROR_CERTIFICATE]: {
      commonName: 'coppice:image-mirror',
      ipAddresses: [ranges.nodeAddress],
      usages: ['server'],
    },
    ...Object.fromEntries(
      Object.entries(USERS).map(([name, { commonName, organizations }]) => [
        name,
        { commonName, organizations: [...organizations], usages: ['client'] } satisfies CertificateRequest,
      ]),
    ),
  };
}

/** Certificate and key of this name; undefined: missing, or only one of them replaced. */
export async function readPair(directory: StateDirectory, name: string): Promise<KeyPair | undefined> {
  const [cert, key] = await Promise.all([
    readText(directory.pki(`${name}.crt`)),
    readText(directory.pki(`${name}.key`)),
  ]);
  const pair = { cert, key };
  return isPair(pair) ? pair : undefined;
}

async function writePair(directory: StateDirectory, name: string, pair: KeyPair): Promise<void> {
  await writeAtomic(directory.pki(`${name}.key`), pair.key);
  await writeAtomic(directory.pki(`${name}.crt`), pair.cert);
}

/** The CA, renewed when it nears expiry. A garden whose CA is lost gets a new CA, and all certificates anew. */
async function ensureAuthority(
  directory: StateDirectory,
  name: string,
  commonName: string,
  now: Date,
): Promise<KeyPair> {
  const found = await readPair(directory, name);
  if (found && !needsRenewal(found.cert, now)) return found;
  const pair = found
    ? await renewCA(found, { days: CA_DAYS, now })
    : await createCA({ commonName, days: CA_DAYS, now });
  await writePair(directory, name, pair);
  return pair;
}

/**
 * Issues and renews every certificate, key and kubeconfig of the garden that is missing, near expiry, signed by another
 * CA, or different from the request. Resolves to the names of the changed ones. etcd has a CA of its own, so that no
 * API server client can connect to it.
 */
export async function ensureCertificates(
  directory: StateDirectory,
  garden: { ranges: Ranges; apiserverPort: number; now: Date },
): Promise<Set<string>> {
  const { ranges, apiserverPort, now } = garden;
  const [ca, etcdCA] = await Promise.all([
    ensureAuthority(directory, 'ca', 'coppice-garden', now),
    ensureAuthority(directory, 'etcd-ca', 'coppice-garden-etcd', now),
  ]);
  const changed = new Set<string>();
  const pairs = new Map<string, KeyPair>();
  await Promise.all(
    Object.entries(requests(ranges)).map(async ([name, request]) => {
      const issuer = name.includes('etcd') ? etcdCA : ca;
      let pair = await readPair(directory, name);
      if (
        !pair ||
        needsRenewal(pair.cert, now) ||
        !issuedBy(pair.cert, issuer.cert) ||
        !certificateMatches(pair.cert, request)
      ) {
        pair = await issue(issuer, { ...request, days: LEAF_DAYS, now });
        await writePair(directory, name, pair);
        changed.add(name);
      }
      pairs.set(name, pair);
    }),
  );
  if ((await readText(directory.pki('service-account.pub'))) === undefined) {
    const key = await newServiceAccountKey();
    await writeAtomic(directory.pki('service-account.key'), key.private);
    await writeAtomic(directory.pki('service-account.pub'), key.public);
    changed.add('service-account');
  }
  const server = `https://127.0.0.1:${apiserverPort}`;
  for (const user of Object.keys(USERS)) {
    const text = writeKubeconfigText({ server, ca: ca.cert, ...pairs.get(user)!, name: 'coppice', user });
    if (await writeIfChanged(directory.kubeconfigFile(user), text)) changed.add(user);
  }
  return changed;
}
