import { GROUP, LABELS } from './group.ts';
import { KUBECONFIG_SIGNERS, MAX_KUBECONFIG_REQUEST } from './kubeconfig-request.ts';
import type { KubeObject } from './meta.ts';
import { refusing } from './refusing-policy.ts';

/**
 * Most characters of `spec.request` (base64) of anybody. The largest requests in use have a key of RSA 16384 and a hundred names, in
 * 30,000 characters.
 */
export const MAX_CERTIFICATE_REQUEST = 64 * 1024;
/** Most characters of keys and values of all annotations; `kubectl apply` adds one that contains the request. */
const MAX_ANNOTATIONS = 2 * MAX_KUBECONFIG_REQUEST;
const MAX_LABELS = 16;

const REQUESTS = `authorizer.group('certificates.k8s.io').resource('certificatesigningrequests')`;
/**
 * Coppice's role for requesters gives `create` and `get` alone. Kubelets, bootstrap tokens, cert-manager, agents and administrators have a
 * role that gives at least one of these verbs, too. Kubernetes' budget for one expression (1,000,000) allows two checks (350,000 each).
 */
const VERBS_OF_OTHER_ROLES = ['list', 'watch'] as const;
const signers = Object.values(KUBECONFIG_SIGNERS);

/** In CEL: the map in managed fields names only what the object's map has, so that it is no larger than that one. */
const namesKeysOf = (field: 'labels' | 'annotations', map: string): string =>
  `${map}.all(name, ${map}[name].size() == 0 && (name == '.' || (name.startsWith('f:') && has(object.metadata.${field}) && name.substring(2) in object.metadata.${field})))`;

const FIELD = 'entry.fieldsV1[part][field]';
/**
 * In CEL: managed fields are as the API server writes them for such a request. A client may send some of its own, of any size, which the
 * API server stores.
 */
const MANAGED_FIELDS = `entry.apiVersion.size() <= 64 && (!has(entry.subresource) || entry.subresource.size() == 0) && (!has(entry.fieldsV1) || entry.fieldsV1.size() <= 4 && entry.fieldsV1.all(part, part.size() <= 16 && entry.fieldsV1[part].size() <= 16 && entry.fieldsV1[part].all(field, field == 'f:labels' ? ${namesKeysOf('labels', FIELD)} : field == 'f:annotations' ? ${namesKeysOf('annotations', FIELD)} : field.size() <= 32 && ${FIELD}.size() == 0)))`;

/**
 * Bounds CertificateSigningRequests when they are created. The requesters' role is bound to all who are authenticated, no quota counts these
 * objects, and Kubernetes keeps one that nobody answers for 24 hours: without bounds any ServiceAccount fills etcd. Requesters whom only that
 * role allows to ask may store what the operator sees, answers and deletes, and nothing that would keep it.
 */
export function certificateRequests(): KubeObject[] {
  const unlessOther = (rule: string) => `variables.hasOtherRole || (${rule})`;
  return refusing(`certificate-requests.${GROUP}`, {
    matchConstraints: {
      resourceRules: [
        {
          apiGroups: ['certificates.k8s.io'],
          apiVersions: ['*'],
          operations: ['CREATE'],
          resources: ['certificatesigningrequests'],
        },
      ],
    },
    variables: [
      {
        name: 'hasOtherRole',
        expression: VERBS_OF_OTHER_ROLES.map((verb) => `${REQUESTS}.check('${verb}').allowed()`).join(' || '),
      },
    ],
    validations: [
      {
        expression: `size(object.spec.request) <= ${MAX_CERTIFICATE_REQUEST}`,
        message: `spec.request has more than ${MAX_CERTIFICATE_REQUEST} characters: ask for fewer names in one certificate`,
        reason: 'Invalid',
      },
      {
        expression: unlessOther(`object.spec.signerName in [${signers.map((name) => `'${name}'`).join(', ')}]`),
        message: `without verb list or watch on certificatesigningrequests you may only ask for kubeconfigs: spec.signerName must be ${signers.join(' or ')}`,
        reason: 'Forbidden',
      },
      {
        // The operator sees no request without them, so nobody would delete it for a day.
        expression: unlessOther(
          `has(object.metadata.labels) && ['${LABELS.workerCluster}', '${LABELS.workerClusterNamespace}'].all(label, label in object.metadata.labels)`,
        ),
        message: `a request for a kubeconfig needs the labels ${LABELS.workerCluster} and ${LABELS.workerClusterNamespace}`,
        reason: 'Invalid',
      },
      {
        expression: unlessOther(`size(object.spec.request) <= ${MAX_KUBECONFIG_REQUEST}`),
        message: `spec.request of a request for a kubeconfig has at most ${MAX_KUBECONFIG_REQUEST} characters`,
        reason: 'Invalid',
      },
      {
        // A finalizer would keep the request for ever.
        expression: unlessOther(
          `(!has(object.metadata.finalizers) || size(object.metadata.finalizers) == 0) && (!has(object.metadata.ownerReferences) || size(object.metadata.ownerReferences) == 0)`,
        ),
        message: 'a request for a kubeconfig has no finalizers and no ownerReferences',
        reason: 'Invalid',
      },
      {
        expression: unlessOther(
          `size(object.metadata.labels) <= ${MAX_LABELS} && (!has(object.metadata.annotations) || object.metadata.annotations.map(key, size(key) + size(object.metadata.annotations[key])).sum() <= ${MAX_ANNOTATIONS})`,
        ),
        message: `a request for a kubeconfig has at most ${MAX_LABELS} labels, and annotations of ${MAX_ANNOTATIONS} characters`,
        reason: 'Invalid',
      },
      {
        expression: unlessOther(
          `!has(object.metadata.managedFields) || (size(object.metadata.managedFields) == 1 && object.metadata.managedFields.all(entry, ${MANAGED_FIELDS}))`,
        ),
        message: 'a request for a kubeconfig has no metadata.managedFields: the API server writes them',
        reason: 'Invalid',
      },
    ],
  });
}
