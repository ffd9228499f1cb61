! Heat in a plate, in Fortran as users write it: a field and its history, then a restart.
program heat
  use hdf5
  implicit none
  integer, parameter :: n = 128, steps = 25
  character(len=1024) :: path
  integer(hid_t) :: file, space, field, attribute, scalar
  integer(hsize_t) :: dims(2) = [n, n], one(1) = [1]
  real(8) :: plate(n, n)
  integer :: step, err

  call get_command_argument(1, path)
  plate = 0.0d0
  plate(:, 1) = 100.0d0
  call h5open_f(err)
  call check(err, 'h5open')

  call h5fcreate_f(trim(path), H5F_ACC_TRUNC_F, file, err)
  call check(err, 'h5fcreate')
  call h5screate_simple_f(2, dims, space, err)
  call h5dcreate_f(file, 'plate', H5T_NATIVE_DOUBLE, space, field, err)
  call check(err, 'h5dcreate')
  do step = 1, steps
    plate(2:n-1, 2:n-1) = 0.25d0 * (plate(1:n-2, 2:n-1) + plate(3:n, 2:n-1) &
                                    + plate(2:n-1, 1:n-2) + plate(2:n-1, 3:n))
    call h5dwrite_f(field, H5T_NATIVE_DOUBLE, plate, dims, err)
    call check(err, 'h5dwrite')
    if (mod(step, 10) == 0) call h5fflush_f(file, H5F_SCOPE_GLOBAL_F, err)
  end do
  call h5dclose_f(field, err)
  call h5sclose_f(space, err)
  call h5fclose_f(file, err)
  call check(err, 'h5fclose')

  call h5fopen_f(trim(path), H5F_ACC_RDWR_F, file, err)
  call check(err, 'h5fopen')
  call h5dopen_f(file, 'plate', field, err)
  call h5screate_f(H5S_SCALAR_F, scalar, err)
  call h5acreate_f(field, 'steps', H5T_NATIVE_INTEGER, scalar, attribute, err)
  call h5awrite_f(attribute, H5T_NATIVE_INTEGER, steps, one, err)
  call check(err, 'h5awrite')
  call h5aclose_f(attribute, err)
  call h5sclose_f(scalar, err)
  call h5dclose_f(field, err)
  call h5fclose_f(file, err)
  call check(err, 'h5fclose')
  call h5close_f(err)
  print '(2a)', 'closed ', trim(path)

contains

  subroutine check(code, what)
    integer, intent(in) :: code
    character(*), intent(in) :: what
    if (code < 0) then
      print '(2a)', what, ' failed'
      stop 1
    end if
  end subroutine check

end program heat
