import { GROUP, LABELS } from './group.ts';
import { KUBECONFIG_SIGNERS, MAX_KUBECONFIG_REQUEST } from './kubeconfig-request.ts';
import type { KubeObject } from './meta.ts';
import { refusingPolicy } from './refusing-policy.ts';

/**
 * Longest `spec.request` (base64), in characters, for any requester. The largest requests in use (RSA 16384, a hundred
 * names) have 30,000 characters.
 */
export const MAX_CERTIFICATE_REQUEST = 64 * 1024;
/** Most characters of all annotations, keys and values; `kubectl apply` adds one that contains the request. */
const MAX_ANNOTATIONS = 2 * MAX_KUBECONFIG_REQUEST;
const MAX_LABELS = 16;

const REQUESTS = `authorizer.group('certificates.k8s.io').resource('certificatesigningrequests')`;
/**
 * Verbs that tell requesters with another role: Coppice's role for requesters has `create` and `get` alone, while
 * kubelets, bootstrap tokens, cert-manager, agents and administrators have one of these too. Kubernetes' cost budget of
 * an expression (1,000,000) allows two checks (350,000 each).
 */
const VERBS_OF_OTHER_ROLES = ['list', 'watch'] as const;
const signers = Object.values(KUBECONFIG_SIGNERS);

/** CEL: the map in managedFields names only keys of the object's own map, so that it is no larger. */
const namesKeysOf = (field: 'labels' | 'annotations', map: string): string =>
  `${map}.all(name, ${map}[name].size() == 0 && (name == '.' || (name.startsWith('f:') && has(object.metadata.${field}) && name.substring(2) in object.metadata.${field})))`;

const FIELD = 'entry.fieldsV1[part][field]';
/**
 * CEL: managedFields have the form that the API server writes for such a request. A client may send any managedFields,
 * which the API server would store.
 */
const MANAGED_FIELDS = `entry.apiVersion.size() <= 64 && (!has(entry.subresource) || entry.subresource.size() == 0) && (!has(entry.fieldsV1) || entry.fieldsV1.size() <= 4 && entry.fieldsV1.all(part, part.size() <= 16 && entry.fieldsV1[part].size() <= 16 && entry.fieldsV1[part].all(field, field == 'f:labels' ? ${namesKeysOf('labels', FIELD)} : field == 'f:annotations' ? ${namesKeysOf('annotations', FIELD)} : field.size() <= 32 && ${FIELD}.size() == 0)))`;

/**
 * Bounds CertificateSigningRequests at creation. All authenticated users may create them, no quota counts them, and
 * Kubernetes keeps an unanswered one for 24 hours: without bounds any ServiceAccount could fill etcd. Requesters with
 * only that role may create requests that the operator sees, answers and deletes, and nothing that prevents the
 * deletion.
 */
export function certificateRequests(): KubeObject[] {
  const unlessOther = (rule: string) => `variables.hasOtherRole || (${rule})`;
  return refusingPolicy(`certificate-requests.${GROUP}`, {
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
        // The operator does not see requests without these labels, so they would stay for a day.
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
