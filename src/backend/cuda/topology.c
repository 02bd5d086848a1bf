/* SPDX-License-Identifier: Apache-2.0 */
/* Where the device sits: what the system's PCI folder says. */
#include "backend/cuda/cuda_backend.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads one small file of the device's PCI folder; false if there is none. */
static bool read_pci_file(int ordinal, const char *file, char *text, size_t room)
{
    char bus[32];
    if (cudaDeviceGetPCIBusId(bus, sizeof bus, ordinal) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    for (char *c = bus; *c != '\0'; c++) {
        *c = (char)tolower((unsigned char)*c);
    }
    char path[128];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", bus, file);
    FILE *stream = fopen(path, "re");
    if (stream == NULL) {
        return false;
    }
    bool read = fgets(text, (int)room, stream) != NULL;
    fclose(stream);
    return read;
}

int hr_cuda_numa_node(int ordinal)
{
    char text[32];
    return read_pci_file(ordinal, "numa_node", text, sizeof text) ? (int)strtol(text, NULL, 10) : -1;
}

void hr_cuda_pcie_link(int ordinal, uint32_t *generation, uint32_t *width)
{
    /* Of the link's maximum: an idle link is clocked down, and would say so. */
    static const struct {
        double gigatransfers;
        uint32_t generation;
    } speeds[] = {{2.5, 1}, {5.0, 2}, {8.0, 3}, {16.0, 4}, {32.0, 5}, {64.0, 6}};
    char text[64];
    *generation = 0;
    *width = 0;
    if (read_pci_file(ordinal, "max_link_speed", text, sizeof text)) {
        double speed = strtod(text, NULL);
        for (size_t i = 0; i < sizeof speeds / sizeof speeds[0]; i++) {
            if (speed > speeds[i].gigatransfers - 0.1 && speed < speeds[i].gigatransfers + 0.1) {
                *generation = speeds[i].generation;
            }
        }
    }
    if (read_pci_file(ordinal, "max_link_width", text, sizeof text)) {
        *width = (uint32_t)strtoul(text, NULL, 10);
    }
}
