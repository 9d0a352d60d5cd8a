import { keepsClusters } from '../../kit/conformance/clusters.ts';
import { memoryTestbed } from '../../kit/conformance/memory-testbed.ts';

keepsClusters('the cloud in memory', 'm', memoryTestbed);
