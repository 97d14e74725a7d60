// Counts the torn pages of PostgreSQL's files: torn FILE... prints the first page whose checksum is wrong, and exits
// with 1. Built with the headers of postgresql-server-dev: cc -O2 -I $(pg_config --includedir-server) torn.c -o torn.
#include "postgres.h"
#include "storage/bufpage.h"
#include "storage/checksum_impl.h"
#undef printf
#include <stdio.h>

int main(int count, char **names)
{
	static PGAlignedBlock page;
	for (int index = 1; index < count; index++)
	{
		FILE *file = fopen(names[index], "rb");
		for (BlockNumber number = 0; file && fread(page.data, BLCKSZ, 1, file) == 1; number++)
		{
			PageHeader header = (PageHeader) page.data;
			if (header->pd_upper && pg_checksum_page(page.data, number) != header->pd_checksum)
			{
				printf("%s: page %u\n", names[index], number);
				return 1;
			}
		}
		if (file)
			fclose(file);
	}
	return 0;
}
