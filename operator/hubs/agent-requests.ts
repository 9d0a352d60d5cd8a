import { type CertificateSigningRequest, CSRS } from '../kube/resources.ts';
import { requestedSubject } from '../pki/requested-subject.ts';
import type { Member, Reader, Trace, Wanted } from './contract.ts';
import { CLUSTER_NAME } from './managed-cluster.ts';

const USERS = 'system:open-cluster-management:';
const SIGNER = 'kubernetes.io/kube-apiserver-client';

/** The account in the hub as which the agents of a member ask for their first certificate. */
export const bootstrapOf = ({ name }: Member) => ({ namespace: 'kube-system', name: `coppice-${name}` });

/** A request that is approved here: the hub keeps it for a while. */
export const requestTrace = (member: Member, name: string): Trace => ({
  on: 'hub',
  resource: CSRS,
  name,
  labels: { [CLUSTER_NAME]: member.name },
});

export const approval = (name: string): Wanted => ({
  on: 'hub',
  resource: CSRS,
  subresource: 'approval',
  object: {
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    status: {
      conditions: [
        {
          type: 'Approved',
          status: 'True',
          reason: 'CoppiceJoin',
          message: 'the request comes from the ServiceAccount that Coppice made for the cluster',
        },
      ],
    },
  },
});

/** Certificate requests to approve: of the member's account and for its name only, as anybody who may ask can write the labels. */
export async function requestsOf(hub: Reader, member: Member): Promise<string[]> {
  const { namespace, name } = bootstrapOf(member);
  const labelSelector = `${CLUSTER_NAME}=${member.name}`;
  const requests = (await hub.list(CSRS, { labelSelector })) as CertificateSigningRequest[];
  return requests
    .filter(
      ({ spec, status }) =>
        spec.username === `system:serviceaccount:${namespace}:${name}` &&
        spec.signerName === SIGNER &&
        isFor(member.name, spec.request) &&
        !status?.conditions?.length,
    )
    .map(({ metadata }) => metadata.name);
}

/** Whether a certificate is asked for an agent of this cluster, and for nobody else. */
function isFor(name: string, request: string): boolean {
  const { commonName = '', organizations = [] } = requestedSubject(request) ?? {};
  const [cluster, agent, ...more] = commonName.slice(USERS.length).split(':');
  const groups = organizations.filter((group) => group !== `${USERS}managed-clusters`);
  const isAgent = commonName.startsWith(USERS) && cluster === name && agent && more.length === 0;
  return Boolean(isAgent) && groups.length === 1 && groups[0] === `${USERS}${name}`;
}
