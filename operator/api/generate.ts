import { dump } from 'js-yaml';
import { admissionPolicies } from './admission-policies.ts';
import { crdOf, crds, type Schema } from './crd.ts';
import { operatorFlow, tenantsFlow } from './flows.ts';
import { KINDS } from './kinds.ts';
import type { KubeObject } from './meta.ts';
import { referencePage } from './reference.ts';
import {
  clusterRole,
  crdJobRules,
  gardenRules,
  ownNamespaceRules,
  roleFor,
  seedRules,
  tenantRoles,
  uninstallJobRules,
} from './roles.ts';
import { seedServices } from './seed-service-policy.ts';
import { troubleshootingPages } from './troubleshooting.ts';

const NOTICE = '# Generated from operator/api by `npm run generate`. Do not edit.\n';

const yaml = (...objects: unknown[]): string =>
  NOTICE + objects.map((object) => dump(object, { lineWidth: 120, noRefs: true })).join('---\n');

/** Every file that is generated from the kinds, by path from the root of the repository. */
export function generatedFiles(): Map<string, string> {
  const files = new Map<string, string>();
  const made = KINDS.map((definition) => ({ definition, object: crdOf(definition) }));
  const kinds = made
    .filter(({ definition }) => definition.spec)
    .map(({ definition, object }) => ({
      definition,
      spec: object.spec.versions[0].schema.openAPIV3Schema.properties.spec as Schema,
    }));
  for (const { definition, object } of made) {
    files.set(`charts/coppice/crds/${definition.plural}.yaml`, yaml(object));
    files.set(`docs/reference/${definition.plural}.md`, referencePage(definition, object, kinds));
  }
  for (const [name, text] of troubleshootingPages()) files.set(`docs/reference/troubleshooting/${name}`, text);
  for (const [name, objects] of admissionPolicies())
    files.set(`charts/coppice/templates/${name}.yaml`, yaml(...objects));
  const spared = '{{ toJson .Values.seed.externalIPs.allowedNamespaces }}';
  const services = yaml(...seedServices(spared));
  files.set('charts/coppice/templates/seed-services.yaml', `{{- if .Values.seed.inGarden }}\n${services}{{- end }}\n`);
  files.set('charts/coppice/templates/tenant-roles.yaml', yaml(...tenantRoles()));
  // Helm replaces the namespace.
  const serviceAccount = { name: 'coppice-operator', namespace: '{{ .Release.Namespace }}' };
  const flows = [...operatorFlow({ kind: 'ServiceAccount', serviceAccount }), ...tenantsFlow()];
  files.set('charts/coppice/templates/flows.yaml', yaml(...flows));
  files.set(
    'charts/coppice/templates/clusterroles.yaml',
    yaml(clusterRole('coppice-operator', gardenRules()), clusterRole('coppice-seed', seedRules())),
  );
  const { name, namespace } = serviceAccount;
  const account = { kind: 'ServiceAccount', ...serviceAccount };
  files.set('charts/coppice/templates/role.yaml', yaml(...roleFor(name, namespace, ownNamespaceRules(), account)));
  files.set(
    'charts/coppice/templates/jobs/clusterroles.yaml',
    yaml(
      ofJob(
        'coppice-crds',
        'pre-install,pre-upgrade,pre-rollback',
        crdJobRules(crds().map((one) => one.metadata.name)),
      ),
      ofJob('coppice-uninstall', 'pre-delete', uninstallJobRules()),
    ),
  );
  return files;
}

/** Rights of a Helm hook Job: created before the Job, deleted after its success. */
function ofJob(name: string, moments: string, rules: Parameters<typeof clusterRole>[1]): KubeObject {
  const role = clusterRole(name, rules);
  const annotations = {
    'helm.sh/hook': moments,
    'helm.sh/hook-weight': '-10',
    'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
  };
  return { ...role, metadata: { ...role.metadata, annotations } };
}
