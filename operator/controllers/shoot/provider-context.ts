import type { ProviderContext } from '../../../providers/contract.ts';
import type { CloudProfile } from '../../api/cloudprofile.ts';
import { LABELS } from '../../api/group.ts';
import type { Seed } from '../../api/seed.ts';
import { conditionIsTrue } from '../../kube/resources.ts';
import {
  type CertificateRequest,
  certificateMatches,
  issue,
  issuedBy,
  LEAF_DAYS,
  needsRenewal,
} from '../../pki/certificates.ts';
import { bootstrapTokenSecret, newBootstrapToken, tokenText } from '../../shoot/bootstrap-token.ts';
import { KUBEADM_JOINERS } from '../../shoot/kubeadm-certs.ts';
import { bootstrapKubeconfig, clientKubeconfig, kubeProxyKubeconfig } from '../../shoot/kubeconfigs.ts';
import { ADMIN_GROUP, keyPair } from '../../shoot/pki.ts';
import { encryptionSeen } from '../../shoot/secrets-encryption.ts';
import { CLUSTER_DOMAIN, dnsServiceAddress, machinesURL } from '../../shoot/values.ts';
import { imageMirrorCAOf, imageMirrorOf } from './control-plane-values.ts';
import { needsToken, TOKEN_LIFE_MS, TOKENS_SECRET, tokenOf, tokensSecret } from './machines/bootstrap-tokens.ts';
import type { Operation } from './operation.ts';
import { storeKeys } from './stored-keys.ts';

/** Context for the provider. Without certificates (a half-made shoot) it suffices for deletion. */
export function providerContext(op: Operation, profile: CloudProfile, seedObject: Seed): ProviderContext {
  const { seed, shoot, state, values, vni, deps } = op;
  const { name, namespace = '', uid = '' } = shoot.metadata;
  const encryptionRevision = encryptionSeen(op.pki)?.revision;
  const mirror = imageMirrorOf(seedObject);
  const mirrorCA = imageMirrorCAOf(seedObject);
  return {
    seed: seed.client,
    ...(state.connection && { shoot: state.connection.client }),
    namespace: values.namespace,
    shootName: name,
    shootNamespace: namespace,
    technicalID: values.namespace,
    uid,
    region: shoot.spec.region,
    kubernetesVersion: values.version,
    apiserverURL: values.addresses.apiServer ? machinesURL(values) : '',
    clusterCA: op.pki['ca.crt'] ?? '',
    podCIDR: values.networks.pods,
    serviceCIDR: values.networks.services,
    ...(shoot.spec.networking?.nodes && { nodeCIDR: shoot.spec.networking.nodes }),
    dnsIP: dnsServiceAddress(values.networks.services),
    clusterDomain: CLUSTER_DOMAIN,
    ...(mirror && { imageMirror: mirror }),
    ...(mirror && mirrorCA && { imageMirrorCA: mirrorCA }),
    ...(seedObject.spec.machineImage && { machineImage: seedObject.spec.machineImage }),
    ...(encryptionRevision !== undefined && { encryptionRevision }),
    ...(values.priorityClassName && { controlPlanePriority: values.priorityClassName }),
    vni,
    profile,
    bootstrapKubeconfig: async (pool, machines) =>
      bootstrapKubeconfig(values, op.pki, await state.secretWrites.run(() => bootstrapToken(op, pool, machines))),
    kubeProxyKubeconfig: async () => kubeProxyKubeconfig(values, op.pki),
    componentKubeconfig: (user) => state.secretWrites.run(() => componentKubeconfig(op, user)),
    ...(op.provider.inCloud && { cloud: () => deps.account(shoot, profile, op.signal) }),
    log: deps.log,
  };
}

/** The pool's token: the present one, or a new one while machines have yet to join. */
async function bootstrapToken(op: Operation, pool: string, machines: number | undefined): Promise<string> {
  const { seed, state, values, deps } = op;
  const key = `${values.namespace}/${TOKENS_SECRET}`;
  const existing = seed.secrets.get(key);
  const token = tokenOf(existing, pool);
  const pools = [...op.pools, ...(op.controlPlanePool ? [op.controlPlanePool] : [])];
  const wanted = machines ?? pools.find((candidate) => candidate.name === pool)?.count ?? 0;
  const nodes = state.connection?.nodes.list() ?? [];
  const joined = nodes.filter(
    (node) => node.metadata.labels?.[LABELS.pool] === pool && conditionIsTrue(node, 'Ready'),
  ).length;
  if (token && !needsToken(token, wanted, joined, deps.now())) return token.text;
  const made = newBootstrapToken();
  const expires = new Date(+deps.now() + TOKEN_LIFE_MS);
  // The cluster must accept the token before machines get it, or a quick machine would be refused.
  const groups = pool === op.controlPlanePool?.name ? [KUBEADM_JOINERS] : [];
  await state.connection?.client.create(bootstrapTokenSecret(made, pool, expires, groups));
  const secret = tokensSecret(
    values,
    existing,
    pools.map(({ name }) => name),
    new Map([[pool, { text: tokenText(made), expires }]]),
  );
  seed.secrets.absorb((await seed.applier.apply(secret)).object);
  return tokenText(made);
}

/** Stored among the shoot's keys, so that the result stays equal across restarts. */
async function componentKubeconfig(op: Operation, user: string): Promise<string> {
  const id = `component-${user}`;
  const now = op.deps.now();
  const known = op.pki[`${id}.crt`];
  const ca = keyPair(op.pki, 'ca');
  const request: CertificateRequest = { commonName: user, organizations: [ADMIN_GROUP], usages: ['client'] };
  const sound = known && issuedBy(known, ca.cert) && certificateMatches(known, request) && !needsRenewal(known, now);
  if (!sound) {
    const pair = await issue(ca, { ...request, days: LEAF_DAYS, now });
    await storeKeys(op, { ...op.pki, [`${id}.crt`]: pair.cert, [`${id}.key`]: pair.key });
  }
  return clientKubeconfig(op.values, op.pki, keyPair(op.pki, id), user);
}
