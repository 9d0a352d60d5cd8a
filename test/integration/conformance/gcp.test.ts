import { keepsClusters } from '../../kit/conformance/clusters.ts';
import { fakeCloudScene } from '../../kit/conformance/fake-cloud-scene.ts';
import { engineFor } from '../../kit/stacks/runner.ts';

keepsClusters(`gcp, by the ${engineFor('gcp', 'managed')} engine,`, 'e2-standard-2', () => fakeCloudScene('gcp'));
