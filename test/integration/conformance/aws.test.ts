import { keepsClusters } from '../../kit/conformance/clusters.ts';
import { fakeCloudScene } from '../../kit/conformance/fake-cloud-scene.ts';

keepsClusters('aws', 'm5.large', () => fakeCloudScene('aws'));
