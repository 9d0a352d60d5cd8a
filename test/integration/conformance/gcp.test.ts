import { keepsClusters } from '../../kit/conformance/clusters.ts';
import { fakeCloudTestbed } from '../../kit/conformance/fake-cloud-testbed.ts';
import { engineFor } from '../../kit/stacks/runner.ts';

keepsClusters(`gcp, by the ${engineFor('gcp', 'managed')} engine,`, 'e2-standard-2', () => fakeCloudTestbed('gcp'));
