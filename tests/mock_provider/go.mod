module mockprovider

go 1.19
