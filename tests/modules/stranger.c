/* SPDX-License-Identifier: Apache-2.0 */
/* A library that has the name of a module and is none. */
__attribute__((visibility("default"))) int hr_stranger;
int hr_stranger = 1;
