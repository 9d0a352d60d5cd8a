import { beforeAll } from 'vitest';
import type { CloudProfile } from '../../../operator/api/cloudprofile.ts';
import { profileManifests } from '../../../operator/api/profiles.ts';
import { awsClusters } from '../../../providers/aws/index.ts';
import { azureClusters } from '../../../providers/azure/index.ts';
import { gcpClusters } from '../../../providers/gcp/index.ts';
import { providerNamed } from '../../../providers/index.ts';
import type { StackRunner } from '../../../providers/pulumi/stack-runner.ts';
import { validatesClusters } from '../../kit/conformance/cloud-validation.ts';
import { validatesPools } from '../../kit/conformance/machine-validation.ts';

/** Validation runs nothing. */
const noRunner = {} as StackRunner;
const profiles = new Map<string, CloudProfile>();

beforeAll(async () => {
  for (const profile of await profileManifests()) profiles.set(profile.metadata.name, profile);
});

for (const [name, open] of Object.entries({ aws: awsClusters, gcp: gcpClusters, azure: azureClusters }))
  validatesClusters(
    name,
    () => open(noRunner),
    () => profiles.get(name)!,
  );

validatesPools(providerNamed('local'), () => [profiles.get('local')!]);
// Takes any profile.
validatesPools(providerNamed('simulated'), () => [...profiles.values()]);
