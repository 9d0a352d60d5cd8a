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

/** Name of the seed's one node. */
export const NODE_NAME = 'seed';

/**
 * Members of this group administer an embedded garden, because it is bound to `cluster-admin` there: who deletes the binding takes it from all of
 * them at once, as nobody can from `system:masters`.
 */
export const GARDEN_ADMINISTRATORS = 'coppice:garden-admins';
/** Who the API server is to the seed's kubelet. */
export const KUBELET_CLIENT = 'coppice:apiserver-kubelet-client';

/** Name of the files with the certificate and the key of the mirror of images. */
export const IMAGE_MIRROR_CERTIFICATE = 'image-mirror';

/** Users of the garden that have a kubeconfig. */
export const USERS = {
  admin: { commonName: 'coppice:admin', organizations: [GARDEN_ADMINISTRATORS] },
  operator: { commonName: OPERATOR_USER, organizations: [] },
  'kube-controller-manager': { commonName: 'system:kube-controller-manager', organizations: [] },
  'kube-scheduler': { commonName: 'system:kube-scheduler', organizations: [] },
  kubelet: { commonName: `system:node:${NODE_NAME}`, organizations: ['system:nodes'] },
  'kube-proxy': { commonName: 'system:kube-proxy', organizations: [] },
} as const;
export type User = keyof typeof USERS;

/** Everything the garden needs certified, by the name of the file. */
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
    // containerd of the seed and of machines asks it for images: whoever else answers at its address must not be believed.
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

/** Certificate and key of that name; undefined: missing, or halfway replaced. */
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

/** The authority, extended when it nears its end. A garden whose authority is lost gets a new one, and new everything. */
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
 * Makes and renews every certificate, key and kubeconfig of the garden: what is missing, near its end, not signed by the
 * authority or not what is needed now. Resolves to the names of those that changed.
 * etcd has an authority of its own, so that no client of the API server can speak to it.
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
